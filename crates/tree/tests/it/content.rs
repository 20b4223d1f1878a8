//! Contents: lists of chunks of any length read back, and hostile ones are refused.

use crate::common::*;
use holdall_format::ObjectId;
use holdall_tree::*;

fn build_content(chunks: &[ChunkRef]) -> (Content, Nodes) {
    let keys = keys();
    let mut nodes = Nodes::default();
    let mut builder = ContentBuilder::new(keys.ids().clone(), *keys.boundary_key());
    for chunk in chunks {
        builder.push(*chunk, &mut nodes).unwrap();
    }
    (builder.finish(&mut nodes).unwrap(), nodes)
}

fn read_content(nodes: &mut Nodes, content: &Content) -> Result<Vec<ChunkRef>, TreeError<Missing>> {
    let mut reader = ContentReader::new(nodes, content);
    let mut chunks = Vec::new();
    while let Some(chunk) = reader.next()? {
        chunks.push(chunk);
    }
    Ok(chunks)
}

fn chunks(count: u64) -> Vec<ChunkRef> {
    let keys = keys();
    let chunk = |n: u64| {
        let id = keys.ids().chunk_id(&n.to_le_bytes());
        ChunkRef { id, len_bytes: 1 + n as u32 % 7000 }
    };
    (0..count).map(chunk).collect()
}

#[test]
fn a_content_of_any_number_of_chunks_reads_back() {
    for count in [0, 1, 47, 48, 49, 127, 129, 2500, 30_000] {
        let chunks = chunks(count);
        let (content, mut nodes) = build_content(&chunks);
        let named = matches!(content, Content::List { .. });
        assert_eq!(named, count > CONTENT_MAX_CHUNKS as u64, "{count}");
        assert_eq!(content.is_empty(), count == 0);
        let len: u64 = chunks.iter().map(|chunk| u64::from(chunk.len_bytes)).sum();
        assert_eq!(content.len_bytes(), len);
        assert_eq!(read_content(&mut nodes, &content), Ok(chunks), "{count}");
    }
}

#[test]
fn one_chunk_over_and_over_takes_few_nodes_whatever_its_id() {
    for number in 0..200 {
        let chunks = vec![ChunkRef { id: id(number), len_bytes: 2 << 20 }; 3000];
        let (content, mut nodes) = build_content(&chunks);
        assert!(nodes.by_id.len() <= 4, "{}", nodes.by_id.len());
        if number < 3 {
            assert_eq!(read_content(&mut nodes, &content), Ok(chunks));
        }
    }
}

#[test]
fn a_change_in_the_middle_leaves_most_list_nodes_as_they_were() {
    let mut chunks = chunks(30_000);
    let (_, nodes) = build_content(&chunks);
    chunks.insert(15_000, ChunkRef { id: id(1 << 40), len_bytes: 1 });
    chunks.remove(15_500);
    let (_, after) = build_content(&chunks);
    let new = new_nodes(&after, &nodes);
    assert!(after.by_id.len() > 30 && new <= 6, "{new} of {}", after.by_id.len());
}

#[test]
fn a_chunk_without_bytes_is_refused() {
    let keys = keys();
    let mut builder = ContentBuilder::new(keys.ids().clone(), *keys.boundary_key());
    let refused = builder.push(ChunkRef { id: id(1), len_bytes: 0 }, &mut Nodes::default());
    assert!(matches!(refused, Err(BuildError::InvalidEntry { .. })));
}

#[test]
fn a_list_that_gives_other_lengths_than_its_entry_says_is_refused() {
    let (content, mut nodes) = build_content(&chunks(5000));
    let Content::List { id, len_bytes } = content else { panic!("not a list") };
    for len_bytes in [len_bytes - 1, len_bytes + 1, 1] {
        let read = read_content(&mut nodes, &Content::List { id, len_bytes });
        assert!(matches!(read, Err(TreeError::Misplaced { .. })));
    }
}

#[test]
fn a_list_node_in_the_place_of_another_is_refused() {
    let (content, nodes) = build_content(&chunks(5000));
    let ids: Vec<ObjectId> = nodes.by_id.keys().copied().collect();
    for (&at, &other) in ids.iter().zip(ids.iter().skip(1)) {
        let mut swapped = nodes.clone();
        let node = swapped.by_id[&other].clone();
        swapped.by_id.insert(at, node);
        assert!(read_content(&mut swapped, &content).is_err());
    }
}

#[test]
fn any_byte_is_reached_by_opening_a_node_of_each_level() {
    let chunks = chunks(30_000);
    let (content, nodes) = build_content(&chunks);
    let mut start = 0;
    for (number, chunk) in chunks.iter().enumerate() {
        let len = u64::from(chunk.len_bytes);
        if number % 997 == 0 || number + 1 == chunks.len() {
            let mut counted = Counted { nodes: nodes.clone(), opened: 0 };
            let mut reader = ContentReader::new(&mut counted, &content);
            assert_eq!(reader.skip(start + len - 1), Ok(len - 1));
            assert_eq!(reader.next(), Ok(Some(*chunk)));
            assert!(counted.opened <= 4, "{} nodes for chunk {number}", counted.opened);
        }
        start += len;
    }
    let mut all = nodes.clone();
    let mut reader = ContentReader::new(&mut all, &content);
    assert_eq!(reader.skip(start + 5), Ok(5));
    assert_eq!(reader.next(), Ok(None));
}

/// Counts the nodes that are asked for.
struct Counted {
    nodes: Nodes,
    opened: usize,
}

impl NodeSource for Counted {
    type Error = Missing;

    fn node(&mut self, id: &ObjectId) -> Result<std::sync::Arc<Node>, Missing> {
        self.opened += 1;
        self.nodes.node(id)
    }
}
