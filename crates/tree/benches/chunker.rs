//! How fast content is cut, beside hashing the same bytes: `cargo bench -p holdall-tree`.

#![allow(clippy::print_stdout, reason = "it is what a benchmark is for")]

use std::hint::black_box;
use std::time::Instant;

use holdall_tree::Chunker;

const BYTES: usize = 256 << 20;
const RUNS: usize = 5;

fn main() {
    let mut data = vec![0; BYTES];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    let chunker = Chunker::new(&[1; 32]);
    let cut = || {
        let mut rest = &data[..];
        while let Some((_, after)) = rest.split_at_checked(chunker.cut(rest).max(1)) {
            rest = after;
        }
    };
    let hash = || {
        black_box(blake3::hash(&data));
    };
    let (mut cutting, mut hashing) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        cutting.push(gigabytes_per_second(cut));
        hashing.push(gigabytes_per_second(hash));
    }
    println!(
        "cut {:.2} GB/s, BLAKE3 {:.2} GB/s: one core, median of {RUNS}",
        median(cutting),
        median(hashing)
    );
}

fn gigabytes_per_second(work: impl Fn()) -> f64 {
    let begun = Instant::now();
    work();
    BYTES as f64 / begun.elapsed().as_secs_f64() / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
