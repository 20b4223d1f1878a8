use super::*;
use crate::backup::{BackupOptions, Source, backup};
use crate::snapshots::snapshots;
use crate::test_world::World;
use holdall_testkit::{SmallFiles, small_files};

#[test]
fn perf_tmp() {
    let base = std::path::PathBuf::from("/tmp/holdall-perf");
    let source = base.join("src");
    if !source.exists() {
        std::fs::create_dir_all(&source).unwrap();
        small_files(&source, &SmallFiles { files: 150_000, dirs: 6000, median_bytes: 2048, seed: 1 }).unwrap();
    }
    let world = World::new();
    let path = source.to_str().unwrap().as_bytes().to_vec();
    let options = BackupOptions::new(vec![Source { path: path.clone(), read_at: path.clone() }], "h".into());
    let t = Instant::now();
    let s = backup(&world.access, &options, &Arc::new(Run::new())).unwrap();
    println!("backup {} items {:?}", s.items, t.elapsed());
    let snapshot = snapshots(&world.access).unwrap().pop().unwrap();
    for i in 0..2 {
        let target = std::path::PathBuf::from(std::option_env!("X").unwrap_or("/dev/shm/holdall-perf-dst")).join(format!("{i}"));
        
        let cpu = holdall_sys::cpu::process_cpu_seconds();
        let run = Run::new();
        let r = restore(&world.access, &snapshot, Some(&path), &target, &RestoreOptions::default(), &run).unwrap();
        println!("restore {} files {:.2}s cpu {:.2} = {:.0}/s", r.files, r.duration_seconds, holdall_sys::cpu::process_cpu_seconds() - cpu, r.files as f64 / r.duration_seconds);
        for s in &r.stages { println!("  {} work {:.2} in {:.2} out {:.2} thr {}", s.name, s.working_seconds, s.waiting_in_seconds, s.waiting_out_seconds, s.threads); }
        println!("{:?}", std::fs::read_to_string("/proc/self/status").unwrap().lines().filter(|l| l.starts_with("VmHWM") || l.starts_with("VmRSS")).collect::<Vec<_>>());
        let t = Instant::now();
        let options = crate::CompareOptions { since: holdall_sys::Timestamp { secs: 1 << 40, nanos: 0 }, left_out: &|_| false };
        let c = crate::compare(&source, &target, &options, &Run::new()).unwrap();
        println!("compare {} {} items {:?}", c.identical, c.items, t.elapsed());
    }
    let t = Instant::now();
    let v = crate::verify(&world.access, crate::Verify::All, &Run::new(), &mut |_| {}).unwrap();
    println!("verify {} objects {:?} {}", v.objects, t.elapsed(), v.is_clean());
}
