//! The files for Prometheus and Grafana: what they ask for is there, and Prometheus takes the rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::is_there;

use super::Place;
use crate::house::text;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring").join(name)
}

/// The names of metrics in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    words.filter(|word| word.starts_with("holdall_")).collect()
}

#[test]
fn what_rules_and_dashboard_ask_for_is_among_the_metrics() {
    let place = Place::new("attic");
    let token = place.token("prometheus", "look");
    let metrics = place.program(&token, "GET", "/metrics", "").expect(200).body;
    let families = metrics.lines().filter_map(|line| line.strip_prefix("# HELP "));
    let families: BTreeSet<_> = families.filter_map(|line| line.split(' ').next()).collect();
    for name in ["holdall.rules.yml", "holdall.grafana.json"] {
        let content = fs::read_to_string(file(name)).expect(name);
        let asked = named(&content);
        assert!(asked.len() > 5, "{name} asks for {asked:?}");
        let missing: Vec<_> = asked.difference(&families).collect();
        assert!(missing.is_empty(), "{name} asks for {missing:?}");
    }
    let dashboard = fs::read_to_string(file("holdall.grafana.json")).expect("a dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(dashboard["panels"].as_array().is_some_and(|panels| panels.len() >= 8));
}

#[test]
fn prometheus_takes_the_rules_and_alerts_by_them() {
    if !is_there("promtool", Path::new("/usr/bin/promtool").exists()) {
        return;
    }
    let mut check = Command::new("promtool");
    let checked = check.args(["check", "rules"]).arg(file("holdall.rules.yml")).output();
    let checked = checked.expect("it runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));

    // A machine whose backup is three days old, one that is fresh, and a disk that is nearly full.
    let place = tempfile::tempdir().expect("room");
    let test = place.path().join("test.yml");
    let rules = file("holdall.rules.yml").canonicalize().expect("it is there");
    let series = |name: &str, labels: &str, value: &str| {
        format!(
            "      - series: '{name}{{instance=\"nas\",{labels}}}'\n        values: '{value}x120'\n"
        )
    };
    let late = "holdall_backup_last_success_timestamp_seconds";
    let content = format!(
        "rule_files: [{}]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n{}{}{}{}{}{}\
         \n    alert_rule_test:\n      - eval_time: 90m\n        alertname: HoldallBackupLate\n        exp_alerts:\n          \
         - exp_labels: {{ severity: warning, instance: nas, machine_id: a, machine: old }}\n            exp_annotations: \
         {{ summary: \"old has no new backup on nas for two days.\" }}\n      - eval_time: 90m\n        \
         alertname: HoldallBackupMissing\n        exp_alerts: []\n      - eval_time: 90m\n        alertname: \
         HoldallDiskNearlyFull\n        exp_alerts:\n          - exp_labels: {{ severity: warning, instance: nas }}\n            \
         exp_annotations: {{ summary: \"0.1024% of the disk of nas are left.\" }}\n",
        text(&rules),
        series(late, "machine_id=\"a\",machine=\"old\"", "-259200+0"),
        series(late, "machine_id=\"b\",machine=\"new\"", "0+60"),
        series("holdall_machine_revoked", "machine_id=\"a\",machine=\"old\"", "0+0"),
        series("holdall_machine_revoked", "machine_id=\"b\",machine=\"new\"", "0+0"),
        "      - series: 'holdall_disk_free_bytes{instance=\"nas\"}'\n        values: '1024+0x120'\n",
        "      - series: 'holdall_disk_total_bytes{instance=\"nas\"}'\n        values: '1000000+0x120'\n",
    );
    fs::write(&test, content).expect("room");
    let tried =
        Command::new("promtool").args(["test", "rules"]).arg(&test).output().expect("it runs");
    let said = [tried.stdout, tried.stderr].concat();
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&said));
}
