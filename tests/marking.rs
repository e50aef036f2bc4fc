//! ECN marking against the trace of the reference model.

use rocemu::base::Octets;
use rocemu::port::{MarkConfig, Marker};

/// Sixty admissions of 25,000 octets to a queue that sends nothing; thresholds 300 KB and 1.2 MB, Pmax 1, weight 0.1.
#[test]
fn average_and_chance_follow_the_reference_trace() {
    let trace = include_str!("data/congestion/red_ewma.csv");
    let mut marker = Marker::new(MarkConfig::default());
    let mut rows = 0;
    for row in trace.lines().skip(1) {
        let [admission, length, average, chance] = *row.split(',').collect::<Vec<_>>() else { panic!("{row}") };
        marker.join(Octets::new(25_000));
        let found = [
            marker.length().get().to_string(),
            format!("{:.3}", marker.average()),
            format!("{:.9}", marker.probability()),
        ];
        assert_eq!(found, [length, average, chance], "admission {admission}");
        rows += 1;
    }
    assert_eq!(rows, 60);
}
