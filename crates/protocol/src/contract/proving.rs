//! Proving that blocks are there.

use bytes::Bytes;
use holdall_format::{BlockName, ObjectId, SessionId, proves_slice, slices_in};

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_no_session, assert_refused};
use super::forge::{id, ids};
use crate::{BlockProbe, MAX_PROBES, SessionPurpose};

cases![
    every_slice_of_a_block_is_proven_before_and_after_a_restart,
    each_copy_is_proven_by_its_own_name,
    what_is_not_there_is_not_proven,
    a_read_session_is_proven_to_too,
    too_many_probes_are_refused,
    proofs_need_an_open_session,
];

fn name_of(block: &Bytes) -> BlockName {
    BlockName::from_bytes(*blake3::hash(block).as_bytes())
}

fn probe(object: ObjectId, block: &Bytes, slice: u32) -> BlockProbe {
    BlockProbe { object, block: name_of(block), slice }
}

fn is_proven(block: &Bytes, slice: u32, proof: Option<&Bytes>) -> bool {
    proof.is_some_and(|proof| proves_slice(&name_of(block), block.len(), slice, proof))
}

fn every_slice_of_a_block_is_proven_before_and_after_a_restart(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let block = fixture.forge.chunks_of_bytes(&[id("chunk")], 20_000);
    fixture.put(&session, std::slice::from_ref(&block));
    let check = |fixture: &Fixture<'_>| {
        let slices: Vec<u32> = (0..slices_in(block.len())).collect();
        assert!((15..=MAX_PROBES).contains(&slices.len()));
        let probes: Vec<_> =
            slices.iter().map(|slice| probe(id("chunk"), &block, *slice)).collect();
        let proofs = fixture.repository.prove_blocks(&session, &probes).unwrap();
        assert_eq!(proofs.len(), probes.len());
        for (slice, proof) in slices.iter().zip(&proofs) {
            assert!(is_proven(&block, *slice, proof.as_ref()), "slice {slice}");
        }
    };
    check(&fixture);
    check(&fixture.restarted());
}

fn each_copy_is_proven_by_its_own_name(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let copies: Vec<_> = (0..3).map(|_| fixture.forge.chunks(&[id("chunk")])).collect();
    for copy in &copies {
        fixture.put(&session, std::slice::from_ref(copy));
    }
    let probes: Vec<_> = copies.iter().rev().map(|copy| probe(id("chunk"), copy, 0)).collect();
    let proofs = fixture.repository.prove_blocks(&session, &probes).unwrap();
    for (copy, proof) in copies.iter().rev().zip(&proofs) {
        assert!(is_proven(copy, 0, proof.as_ref()));
    }
}

fn what_is_not_there_is_not_proven(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let [chunk, other] = ids("chunk", 2)[..] else { unreachable!("two were asked for") };
    let block = fixture.forge.chunks(&[chunk]);
    fixture.put(&session, std::slice::from_ref(&block));
    let elsewhere = fixture.forge.chunks(&[chunk]);
    let probes = [
        probe(other, &block, 0),
        probe(chunk, &elsewhere, 0),
        probe(chunk, &block, slices_in(block.len())),
        probe(chunk, &block, u32::MAX),
        probe(chunk, &block, 0),
    ];
    let proofs = fixture.repository.prove_blocks(&session, &probes).unwrap();
    assert_eq!(proofs[..4], [None, None, None, None]);
    assert!(is_proven(&block, 0, proofs[4].as_ref()));
    assert_eq!(fixture.repository.prove_blocks(&session, &[]).unwrap(), []);
}

fn a_read_session_is_proven_to_too(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let block = fixture.forge.chunks(&[id("chunk")]);
    fixture.put(&fixture.session(), std::slice::from_ref(&block));
    let session = fixture.repository.open_session(&SessionPurpose::Read).unwrap().session;
    let proofs = fixture.repository.prove_blocks(&session, &[probe(id("chunk"), &block, 0)]);
    assert!(is_proven(&block, 0, proofs.unwrap()[0].as_ref()));
}

fn too_many_probes_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let block = fixture.forge.chunks(&[id("chunk")]);
    let probes = vec![probe(id("chunk"), &block, 0); MAX_PROBES + 1];
    assert_refused(fixture.repository.prove_blocks(&fixture.session(), &probes));
}

fn proofs_need_an_open_session(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let unknown = SessionId::from_bytes([5; 16]);
    assert_no_session(fixture.repository.prove_blocks(&unknown, &[]));
}
