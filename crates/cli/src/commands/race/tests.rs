use super::*;

#[test]
fn a_reference_without_a_valid_cost_does_not_fail_a_race() {
    let text = include_str!("../../../../tool/report/tests/summary.json");
    let mut summary: Summary = serde_json::from_str(text).expect("the fixture is a summary");
    summary.cells.retain(|cell| cell.verdict.void.is_empty());
    assert!(!has_failed(&summary));
    for (name, kind, fails) in [
        ("null", Kind::Unstable, false),
        ("epoll-twin", Kind::Noisy, false),
        ("null", Kind::Failed, true),
        ("node", Kind::Unstable, true),
    ] {
        let mut summary = summary.clone();
        let cell = summary.cells.iter_mut().find(|cell| cell.contender == name).unwrap();
        cell.verdict.first_mut().kind = kind;
        cell.verdict.void = vec![Figure::Cost];
        assert_eq!(has_failed(&summary), fails, "{name}, {kind:?}");
    }
}
