//! Lies about blocks.

use bytes::Bytes;
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_protocol::wire::{
    Frames, decode_block_page, decode_fetched, encode_block_page, encode_fetched, encode_times,
};
use holdall_protocol::{Fetched, RequestTimes};

use super::stage::Stage;
use super::{Answer, Lie, RESTORE, Reply, Row, at, hold, once_at, refuses, says};

const VERIFY: &str = "check --verify all";

/// Where a block's header has its fields.
const VERSION_AT: usize = 4;
const SUITE_AT: usize = 5;
const KIND_AT: usize = 6;
const REPOSITORY_AT: usize = 8;
const EPOCH_AT: usize = 24;
const SALT_AT: usize = 40;
const COMMITMENT_AT: usize = 104;
const TABLE_AT: usize = 136;

pub(super) const ROWS: &[Row] = &[
    damaged("another version", |_| with_byte(VERSION_AT)),
    damaged("another suite", |_| with_byte(SUITE_AT)),
    damaged("another kind", |_| with_byte(KIND_AT)),
    damaged("another repository's name", |_| with_byte(REPOSITORY_AT)),
    damaged("another epoch", |_| with_byte(EPOCH_AT)),
    damaged("another salt", |_| with_byte(SALT_AT)),
    damaged("another commitment", |_| with_byte(COMMITMENT_AT)),
    damaged("another table", |_| with_byte(TABLE_AT + 10)),
    damaged("another payload", |_| {
        each_block(|mut block| {
            let middle = block.len() - 2000;
            block[middle] ^= 1;
            block
        })
    }),
    damaged("another last byte", |_| {
        each_block(|mut block| {
            *block.last_mut().unwrap() ^= 0x80;
            block
        })
    }),
    damaged("a block without its end", |_| {
        each_block(|mut block| {
            block.pop();
            block
        })
    }),
    damaged("a block with more behind it", |_| each_block(|block| [&block[..], b"x"].concat())),
    damaged("an empty block", |_| each_block(|_| Vec::new())),
    damaged("zeros", |_| each_block(|block| vec![0; block.len()])),
    damaged("the same block whatever is asked", |_| {
        let first = std::sync::Mutex::new(None);
        at("fetch", move |_, answer| {
            let mut first = first.lock().unwrap();
            Reply::Answer(first.get_or_insert(answer).clone())
        })
    }),
    damaged("no block at all", |_| says("fetch", |_| blocks(Vec::new()))),
    damaged("an empty answer", |_| says("fetch", |_| Vec::new())),
    damaged("blocks without times", |_| {
        says("fetch", |body| {
            let fetched = decode_fetched(&body.into()).unwrap();
            Frames::framed(&fetched.blocks).concat().to_vec()
        })
    }),
    damaged("times that are none", |_| {
        says("fetch", |_| {
            Frames::framed(&[Bytes::from_static(b"{\"seconds\":1}")]).concat().to_vec()
        })
    }),
    fine("times of ages", |_| {
        says("fetch", |body| {
            let (ages, before) = (f64::MAX, -1e300);
            let times = RequestTimes {
                receive_seconds: ages,
                queue_seconds: before,
                cpu_seconds: ages,
                disk_seconds: 1e9,
            };
            let fetched = Fetched { times, ..decode_fetched(&body.into()).unwrap() };
            encode_fetched(&fetched).concat().to_vec()
        })
    }),
    damaged("nothing of what it has", |_| {
        refuses("fetch", 404, r#"{"error":"missing-objects","message":"","ids":[]}"#)
    }),
    damaged("damage everywhere", |_| {
        let body = r#"{"error":"damaged","message":"","what":"a pack","reason":"it says so"}"#;
        refuses("fetch", 500, body)
    }),
    damaged("a refusal that looks like success", |_| {
        says("fetch", |_| br#"{"error":"not-allowed","reason":"no"}"#.to_vec())
    }),
    damaged("more blocks than there may be", |_| {
        says("fetch", |_| behind_times(&vec![0; 4 * 16_385]))
    }),
    damaged("a block longer than blocks are", |_| {
        says("fetch", |_| blocks(vec![Bytes::from(vec![0; BLOCK_MAX_BYTES + 1])]))
    }),
    damaged("a block of gigabytes", |_| says("fetch", |_| behind_times(&[0xff; 100]))),
    damaged("times of gigabytes", |_| says("fetch", |_| vec![0xff; 100])),
    damaged("a body without end", |_| at("fetch", |_, _| Reply::Endless)),
    Row {
        name: "blocks that cannot be had because its disk fails",
        lie: |_| {
            refuses("fetch", 500, r#"{"error":"io","message":"","what":"reading","reason":"x"}"#)
        },
        command: RESTORE,
        exit: 1,
        says: "reading",
    },
    fine("a body that ends in the middle, once", |_| {
        once_at("fetch", |answer| {
            let mut bytes = whole(&answer);
            bytes.truncate(bytes.len() / 2);
            Reply::Raw(bytes)
        })
    }),
    fine("a connection that ends for an answer, once", |_| {
        once_at("fetch", |_| Reply::Raw(Vec::new()))
    }),
    fine("a head that is no head, once", |_| {
        once_at("fetch", |_| Reply::Raw(b"\0\0\0\r\n\r\n".into()))
    }),
    fine("a length that is too long, once", |_| {
        once_at("fetch", |answer| {
            Reply::Raw(
                [b"HTTP/1.1 200 X\r\ncontent-length: 99999999\r\n\r\n", &answer.body[..]].concat(),
            )
        })
    }),
    fine("a body in five hundred pieces", |_| at("fetch", |_, answer| Reply::Trickled(answer))),
    Row {
        name: "a length that is too short",
        lie: |_| {
            once_at("fetch", |answer| {
                let head = b"HTTP/1.1 200 X\r\ncontent-length: 50\r\n\r\n";
                Reply::Raw([head, &answer.body[..]].concat())
            })
        },
        command: RESTORE,
        exit: 20,
        says: "could not be restored",
    },
    verifying("pages without blocks", |_| says("pages", |_| page(|_| None))),
    verifying("a page again and again", |_| {
        says("pages", |body| {
            let mut page = decode_block_page(&body.into()).unwrap();
            page.next = Some(0);
            encode_block_page(&page).concat().to_vec()
        })
    }),
    verifying("pages of changed blocks", |_| {
        says("pages", |body| {
            let mut page = decode_block_page(&body.into()).unwrap();
            for block in &mut page.blocks {
                let mut bytes = block.to_vec();
                *bytes.last_mut().unwrap() ^= 1;
                *block = bytes.into();
            }
            encode_block_page(&page).concat().to_vec()
        })
    }),
    Row {
        name: "a scrub that ends without a word",
        lie: |_| says("scrub", |_| Vec::new()),
        command: "check",
        exit: 1,
        says: "ended by the server",
    },
    Row {
        name: "a scrub of one endless line",
        lie: |_| says("scrub", |_| vec![b'x'; 200_000]),
        command: "check",
        exit: 1,
        says: "answer is not valid",
    },
    Row {
        name: "a scrub that has done more than there is",
        lie: |_| {
            says("scrub", |_| {
                let done = r#"{"done":{"packs":18446744073709551615,"blocks":1,"objects":1,"snapshots":1,"bytes":18446744073709551615}}"#;
                let progress =
                    r#"{"progress":{"bytes_done":18446744073709551615,"bytes_total":0}}"#;
                format!("{progress}\n{done}\n").into_bytes()
            })
        },
        command: "check",
        exit: 0,
        says: "",
    },
];

#[test]
fn lies_about_blocks() {
    hold(ROWS);
}

/// A restore that can have no content.
const fn damaged(name: &'static str, lie: fn(&Stage) -> Lie) -> Row {
    Row { name, lie, command: RESTORE, exit: 20, says: "damaged" }
}

/// A restore that goes on by itself.
const fn fine(name: &'static str, lie: fn(&Stage) -> Lie) -> Row {
    Row { name, lie, command: RESTORE, exit: 0, says: "" }
}

const fn verifying(name: &'static str, lie: fn(&Stage) -> Lie) -> Row {
    Row { name, lie, command: VERIFY, exit: 20, says: "" }
}

/// Changes every block that is fetched.
fn each_block(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Lie {
    says("fetch", move |body| {
        let fetched = decode_fetched(&body.into()).unwrap();
        blocks(fetched.blocks.iter().map(|block| Bytes::from(change(block.to_vec()))).collect())
    })
}

/// An answer of these blocks.
fn blocks(blocks: Vec<Bytes>) -> Vec<u8> {
    encode_fetched(&Fetched { blocks, times: RequestTimes::default() }).concat().to_vec()
}

/// An answer of any bytes in the place of blocks.
fn behind_times(bytes: &[u8]) -> Vec<u8> {
    let times = Frames::framed(&[encode_times(&RequestTimes::default())]).concat();
    [&times[..], bytes].concat()
}

fn with_byte(at: usize) -> Lie {
    each_block(move |mut block| {
        block[at] ^= 1;
        block
    })
}

/// An honest answer's bytes.
fn whole(answer: &Answer) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", answer.body.len());
    [head.as_bytes(), &answer.body].concat()
}

fn page(next: fn(u64) -> Option<u64>) -> Vec<u8> {
    let page = holdall_protocol::BlockPage { next: next(0), ..Default::default() };
    encode_block_page(&page).concat().to_vec()
}
