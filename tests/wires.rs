use bytes::Bytes;
use rocemu::engine::{Hop, Wires};
use rocemu::io::VethWires;
use rocemu::netns::{End, Options, Topology};
use std::time::Instant;

fn topology(nodes: &[&str], cables: &[[(usize, usize); 2]]) -> Topology {
    let end = |(node, port)| End { node, port };
    Topology {
        nodes: nodes.iter().map(|&n| n.to_owned()).collect(),
        cables: cables.iter().map(|ends| ends.map(end)).collect(),
    }
}
fn frame(octets: usize, seed: u8) -> Bytes {
    let mut f: Vec<u8> = (0..octets).map(|n| (n as u8).wrapping_mul(7).wrapping_add(seed)).collect();
    f[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    f.into()
}
#[test]
fn first_light() {
    let start = Instant::now();
    let mut wires = VethWires::create(&topology(&["a", "b"], &[[(0, 0), (1, 0)]]), &Options::default()).unwrap();
    println!("create {:?}", start.elapsed());
    for octets in [60, 62, 84, 4154, 4170, 9290] {
        for from in 0..2 {
            let f = frame(octets, from as u8);
            assert_eq!(wires.carry(Hop::new(0, from), &f).unwrap(), f);
        }
    }
    for octets in [60, 84, 4154] {
        let f = frame(octets, 0);
        for _ in 0..3 {
            let start = Instant::now();
            let n = 20_000;
            for i in 0..n {
                wires.carry(Hop::new(0, i % 2), &f).unwrap();
            }
            println!("{octets}: {:?} per hop, late {}", start.elapsed() / n, wires.late_count());
        }
    }
    wires.finish().unwrap();
    println!("{:?}", wires.foreign());
    let start = Instant::now();
    drop(wires);
    println!("drop {:?}", start.elapsed());
}
#[test]
fn star() {
    let nodes: Vec<String> = (0..70).map(|n| format!("n{n}")).collect();
    let t =
        Topology { cables: (1..70).map(|n| [End { node: 0, port: n - 1 }, End { node: n, port: 0 }]).collect(), nodes };
    let start = Instant::now();
    let wires = VethWires::create(&t, &Options::default()).unwrap();
    println!("create 70 {:?}", start.elapsed());
    let start = Instant::now();
    drop(wires);
    println!("drop 70 {:?}", start.elapsed());
}
