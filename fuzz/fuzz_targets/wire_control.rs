//! Bodies of JSON.

#![no_main]

use holdall_format::PublicKey;
use holdall_protocol::wire::{
    CodeAnswer, CodeConfirmed, ConfirmRequest, ErrorAnswer, ExchangeRequest, PairAnswer,
    PairRequest, decode_run_report, decode_session_answer, decode_session_request, decode_times,
    decode_usage, encode_run_report, encode_session_answer, encode_session_request, encode_usage,
};
use holdall_protocol::{ShortCode, answer_exchange};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = PairRequest::decode(data) {
        let _ = (request.secret(), request.former());
    }
    let _ = PairAnswer::decode(data);
    if let Ok(request) = ExchangeRequest::decode(data) {
        let (machine, server) = (PublicKey::from_bytes([1; 32]), PublicKey::from_bytes([2; 32]));
        let code = ShortCode::from_random([7; 8]);
        if let Some((_, agreed)) = answer_exchange(&code, machine, server, &request.message()) {
            assert!(!agreed.is_confirmed_by_machine(&[0; 32]));
        }
    }
    let _ = CodeAnswer::decode(data);
    if let Ok(request) = ConfirmRequest::decode(data) {
        assert_eq!(ConfirmRequest::decode(&request.encode()), Ok(request));
    }
    if let Ok(confirmed) = CodeConfirmed::decode(data) {
        assert_eq!(CodeConfirmed::decode(&confirmed.encode()), Ok(confirmed));
    }
    let _ = decode_times(data);
    if let Ok(usage) = decode_usage(data) {
        assert_eq!(decode_usage(&encode_usage(&usage)), Ok(usage));
    }
    if let Ok(report) = decode_run_report(data) {
        assert_eq!(decode_run_report(&encode_run_report(&report)), Ok(report));
    }
    if let Ok(purpose) = decode_session_request(data) {
        assert_eq!(decode_session_request(&encode_session_request(&purpose)), Ok(purpose));
    }
    if let Ok(grant) = decode_session_answer(data) {
        assert_eq!(decode_session_answer(&encode_session_answer(&grant)), Ok(grant));
    }
    let answer = ErrorAnswer::new(ErrorAnswer::read(400, data));
    let again = ErrorAnswer::new(ErrorAnswer::read(answer.status, &answer.body));
    assert_eq!(answer.status, again.status);
});
