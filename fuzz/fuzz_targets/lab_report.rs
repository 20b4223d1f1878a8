//! Reports of the lab that somebody sent: read, and written in every form.

#![no_main]

use holdall_lab::report::{Form, Report};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(report) = Report::from_json(data) {
        for form in [Form::Json, Form::Csv, Form::Html, Form::Text] {
            assert!(!report.write(form).is_empty());
        }
    }
});
