use crate::common::*;
use holdall_tree::*;
use std::time::Instant;
#[test]
fn perf() {
    let keys = keys();
    let mut v = Vec::new();
    for d in 0..6000u64 {
        let folder = format!("/home/user/project-{:04}/src/dir-{}", d / 10, d % 10);
        let mut files: Vec<_> =
            (0..50u64).map(|n| key(&format!("{folder}/file-{n}-{d}.txt"))).collect();
        files.sort();
        for (n, p) in files.into_iter().enumerate() {
            let n = n as u64;
            let mut e = file(2000);
            e.user = b"user".as_slice().into();
            e.group = b"users".as_slice().into();
            e.uid = 1000;
            e.gid = 1000;
            e.mtime = Time {
                secs: 1_700_000_000 + (n as i64 * 7919) % 5000,
                nanos: ((n * 77777777) % 1_000_000_000) as u32,
            };
            e.ctime = Time { secs: e.mtime.secs + 5, nanos: 7 };
            e.inode = d * 100 + n;
            e.content = Content::Chunks(vec![ChunkRef { id: id(d * 50 + n), len_bytes: 2000 }]);
            v.push((p, e));
        }
    }
    v.sort_by(|a, b| a.0.cmp(&b.0));
    for bits in [3u8, 4, 5] {
        let t = Instant::now();
        let mut nodes = std::collections::HashMap::new();
        let mut bytes = 0;
        let mut refs = 0;
        let mut sink = |n: BuiltNode| {
            bytes += n.body.len();
            refs += n.refs.len() * 32 + 34;
            nodes.insert(n.id, std::sync::Arc::new(n.into_node()));
            Ok::<(), Missing>(())
        };
        let mut b = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), bits);
        for (p, e) in &v {
            b.push(p, e, &mut sink).unwrap();
        }
        let root = b.finish(&mut sink).unwrap();
        let per = |t: Instant| t.elapsed().as_nanos() as f64 / v.len() as f64;
        println!(
            "bits {bits} build {:.0} ns/entry, {} nodes, body {} B/entry refs {} B/entry level {}",
            per(t),
            nodes.len(),
            bytes / v.len(),
            refs / v.len(),
            root.level
        );
        let t = Instant::now();
        let mut c = Cursor::new(Nodes { by_id: nodes, fetched: 0 }, root.id);
        let mut n = 0;
        while c.peek().unwrap().is_some() {
            n += 1;
            c.advance();
        }
        println!("  cursor {:.0} ns/entry ({n})", per(t));
    }
    let data = crate::chunker::random(256 << 20, 1);
    let ch = Chunker::new(&[1; 32]);
    let t = Instant::now();
    let l = crate::chunker::cuts(&ch, &data, usize::MAX >> 1).len();
    println!(
        "chunker {:.2} GB/s, {} avg",
        data.len() as f64 / t.elapsed().as_secs_f64() / 1e9,
        data.len() / l
    );
}
