//! Entries as octets.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::base::Qpn;
use crate::ring::*;

fn sges(max: usize) -> impl Strategy<Value = ScatterList> {
    let sge = (any::<u64>(), any::<u32>(), 0..=MAX_MESSAGE / 32);
    let sge = sge.prop_map(|(address, lkey, length)| Sge { address, lkey, length });
    vec(sge, 0..=max).prop_map(|list| list.into_iter().collect())
}

fn slot_octets() -> impl Strategy<Value = usize> {
    (6u32..=9).prop_map(|log2| 1 << log2)
}

fn wqe(slot: usize) -> impl Strategy<Value = Wqe> {
    let send = any::<Option<u32>>().prop_map(|immediate| Operation::Send { immediate });
    let write = any::<(u64, u32, Option<u32>)>().prop_map(|(remote_address, rkey, immediate)| Operation::Write {
        remote_address,
        rkey,
        immediate,
    });
    let scatter = sges(max_sges(slot)).prop_map(Payload::Scatter);
    let inline = vec(any::<u8>(), 0..=max_inline(slot)).prop_map(|data| Payload::Inline(data.into_iter().collect()));
    (any::<(u64, bool, bool)>(), prop_oneof![send, write], prop_oneof![scatter, inline]).prop_map(
        |((wr_id, signaled, solicited), operation, payload)| Wqe { wr_id, operation, signaled, solicited, payload },
    )
}

fn cqe() -> impl Strategy<Value = Cqe> {
    let which = (prop::sample::select(&Status::ALL[..]), prop::sample::select(&CompletionOpcode::ALL[..]));
    (any::<(u64, u32, Option<u32>, bool)>(), which, 0u32..1 << 24).prop_map(
        |((wr_id, length, immediate, solicited), (status, opcode), qpn)| Cqe {
            wr_id,
            status,
            opcode,
            length,
            immediate,
            qpn: Qpn::new(qpn).unwrap(),
            solicited,
        },
    )
}

/// Octets that pass the first checks more often than chance lets them.
fn nearly_an_entry() -> impl Strategy<Value = Vec<u8>> {
    (vec(any::<u8>(), 0..=600), 0u8..3, 0u8..9, 0u8..16, 0u8..40, vec((0usize..600, any::<u8>()), 0..4), any::<bool>())
        .prop_map(|(mut slot, version, opcode, flags, count, changes, blank)| {
            if blank {
                slot.fill(0);
            }
            for (octet, value) in slot.iter_mut().zip([version, opcode, flags, count]) {
                *octet = value;
            }
            for (at, value) in changes.into_iter().filter(|_| blank) {
                slot.get_mut(at).into_iter().for_each(|octet| *octet = value);
            }
            slot
        })
}

proptest! {
    #[test]
    fn an_entry_comes_out_of_its_slot_as_it_went_in(
        (slot, wqe) in slot_octets().prop_flat_map(|slot| (Just(slot), wqe(slot))),
        (receive_slot, scatter) in slot_octets().prop_flat_map(|slot| (Just(slot), sges(max_receive_sges(slot)))),
        wr_id: u64,
        cqe in cqe(),
        before: u8,
    ) {
        let mut buffer = vec![before; slot];
        prop_assert!(wqe.encode(&mut buffer).is_ok());
        prop_assert_eq!(Wqe::wr_id(&buffer), wqe.wr_id);
        prop_assert_eq!(Wqe::decode(&buffer), Ok(wqe));
        let receive = ReceiveEntry { wr_id, scatter };
        let mut buffer = vec![before; receive_slot];
        prop_assert!(receive.encode(&mut buffer).is_ok());
        prop_assert_eq!(ReceiveEntry::wr_id(&buffer), wr_id);
        prop_assert_eq!(ReceiveEntry::decode(&buffer), Ok(receive));
        let mut buffer = [before; Cqe::SLOT];
        prop_assert!(cqe.encode(&mut buffer).is_ok());
        prop_assert_eq!(Cqe::decode(&buffer), Ok(cqe));
    }

    #[test]
    fn any_octets_decode_or_are_refused_and_what_decodes_encodes_to_the_same(slot in nearly_an_entry()) {
        let mut again = slot.clone();
        if let Ok(wqe) = Wqe::decode(&slot) {
            prop_assert!(wqe.encode(&mut again).is_ok());
        }
        if let Ok(entry) = ReceiveEntry::decode(&slot) {
            prop_assert!(entry.encode(&mut again).is_ok());
        }
        if let Ok(cqe) = Cqe::decode(&slot) {
            prop_assert!(cqe.encode(&mut again).is_ok());
        }
        prop_assert_eq!(again, slot);
    }
}

fn write(payload: Payload) -> Wqe {
    let operation =
        Operation::Write { remote_address: 0x1122_3344_5566_7788, rkey: 0x99aa_bbcc, immediate: Some(0xddee_ff00) };
    Wqe { wr_id: 0x0102_0304_0506_0708, operation, signaled: true, solicited: true, payload }
}

fn one_sge(length: u32) -> Payload {
    Payload::Scatter([Sge { address: 0x10, lkey: 0x20, length }].into_iter().collect())
}

#[test]
fn a_work_request_lies_in_its_slot_as_the_table_says() {
    let mut slot = [0xee; 64];
    let octets = write(one_sge(0x30)).encode(&mut slot).unwrap();
    let header = b"\x01\x01\x03\x01\x30\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x00\xff\xee\xdd\xcc\xbb\xaa\x99\x88\x77\x66\x55\x44\x33\x22\x11";
    assert_eq!(octets, [&header[..], b"\x10\0\0\0\0\0\0\0\x20\0\0\0\x30\0\0\0"].concat());
    assert_eq!(slot[48..], [0xee; 16], "the rest is left alone");
}

#[test]
fn every_slot_size_holds_what_it_promises_and_no_more() {
    let capacities = |slot| (max_sges(slot), max_inline(slot), max_receive_sges(slot));
    assert_eq!([64, 128, 256, 512].map(capacities), [(2, 32, 3), (6, 96, 7), (14, 224, 15), (30, 480, 31)]);
    for slot in [64, 128, 256, 512] {
        let list = |count| std::iter::repeat_n(Sge::default(), count).collect::<ScatterList>();
        let encode = |payload| write(payload).encode(&mut [0; MAX_SLOT][..slot]).map(<[u8]>::len);
        let (sges, inline, receive) = capacities(slot);
        assert_eq!(encode(Payload::Scatter(list(sges))), Ok(slot));
        assert_eq!(
            encode(Payload::Scatter(list(sges + 1))),
            Err(EntryError::ScatterCount { have: sges + 1, max: sges })
        );
        assert_eq!(encode(Payload::Inline(vec![0; inline].into_iter().collect())), Ok(slot));
        if slot < MAX_SLOT {
            let more = Payload::Inline(vec![0; inline + 1].into_iter().collect());
            assert_eq!(encode(more), Err(EntryError::InlineLength { have: inline + 1, max: inline }));
            let entry = ReceiveEntry { wr_id: 0, scatter: list(receive + 1) };
            let refused = entry.encode(&mut [0; MAX_SLOT][..slot]).map(<[u8]>::len);
            assert_eq!(refused, Err(EntryError::ScatterCount { have: receive + 1, max: receive }));
        }
    }
}

#[test]
fn every_wrong_field_is_named() {
    let after = |payload: Payload, changes: &[(usize, u8)]| {
        let mut slot = [0; 64];
        write(payload).encode(&mut slot).unwrap();
        changes.iter().for_each(|&(at, value)| slot[at] = value);
        (Wqe::decode(&slot).unwrap_err(), Wqe::wr_id(&slot))
    };
    let inline = || Payload::Inline([5; 8].into_iter().collect());
    for (payload, changes, error) in [
        (one_sge(1), &[(0, 2)][..], EntryError::Version(2)),
        (one_sge(1), &[(1, 4)], EntryError::Unsupported(Opcode::Read)),
        (one_sge(1), &[(1, 5)], EntryError::Unsupported(Opcode::CompareAndSwap)),
        (one_sge(1), &[(1, 6)], EntryError::Unsupported(Opcode::FetchAndAdd)),
        (one_sge(1), &[(1, 7)], EntryError::Opcode(7)),
        (one_sge(1), &[(2, 8)], EntryError::Flags(8)),
        (one_sge(1), &[(2, 0x80)], EntryError::Flags(0x80)),
        (one_sge(1), &[(3, 3)], EntryError::ScatterCount { have: 3, max: 2 }),
        (one_sge(1), &[(3, 255)], EntryError::ScatterCount { have: 255, max: 2 }),
        (one_sge(1), &[(4, 2)], EntryError::LengthMismatch { total: 2, sum: 1 }),
        (one_sge(1), &[(47, 0xff)], EntryError::MessageLength(0xff00_0001)),
        (one_sge(1), &[(1, 0)], EntryError::NotZero(Field::Immediate)),
        (one_sge(1), &[(1, 3)], EntryError::NotZero(Field::Rkey)),
        (one_sge(1), &[(1, 3), (20, 0), (21, 0), (22, 0), (23, 0)], EntryError::NotZero(Field::RemoteAddress)),
        (inline(), &[(3, 1)], EntryError::NotZero(Field::ScatterCount)),
        (inline(), &[(4, 33)], EntryError::InlineLength { have: 33, max: 32 }),
        (inline(), &[(7, 0xff)], EntryError::InlineLength { have: 0xff00_0008, max: 32 }),
    ] {
        assert_eq!(after(payload, changes), (error, 0x0102_0304_0506_0708), "{changes:?}");
    }
    assert_eq!(Wqe::decode(&[1; 31]), Err(EntryError::Short { need: 32, have: 31 }));
    assert_eq!(
        write(one_sge(MAX_MESSAGE + 1)).encode(&mut [0; 64]),
        Err(EntryError::MessageLength(MAX_MESSAGE as u64 + 1))
    );

    let receive = |at: usize, value| {
        let mut slot = [0; 64];
        ReceiveEntry { wr_id: 1, scatter: ScatterList::new() }.encode(&mut slot).unwrap();
        slot[at] = value;
        ReceiveEntry::decode(&slot).unwrap_err()
    };
    assert_eq!(receive(0, 0), EntryError::Version(0));
    assert_eq!(receive(1, 4), EntryError::ScatterCount { have: 4, max: 3 });
    assert_eq!(receive(7, 1), EntryError::NotZero(Field::Reserved));

    let completion = |at: usize, value| {
        let (status, opcode, qpn) = (Status::GeneralError, CompletionOpcode::Receive, Qpn::new(2).unwrap());
        let mut slot = [0; 64];
        Cqe { wr_id: 1, status, opcode, length: 0, immediate: None, qpn, solicited: false }.encode(&mut slot).unwrap();
        slot[at] = value;
        Cqe::decode(&slot).unwrap_err()
    };
    assert_eq!(completion(0, 9), EntryError::Version(9));
    assert_eq!(completion(1, 2), EntryError::Opcode(2));
    assert_eq!(completion(2, 3), EntryError::Status(3));
    assert_eq!(completion(3, 4), EntryError::Flags(4));
    assert_eq!(completion(16, 1), EntryError::NotZero(Field::Immediate));
    assert_eq!(completion(23, 1), EntryError::Qpn(0x0100_0002));
}
