//! A race reports whether its requests have identical heads.

use crate::support::race::course::Course;

const RACE: &str = "name = 'test'\nworkload = 'hello'\ncontenders = ['epoll', 'threads']\nrounds = 1\n\
                    window = '300ms'\nwarm_up = '0s'\n[[load]]\nconnections = 4\n";

fn raced(more: &str, args: &[&str]) -> (String, regatta_record::Summary) {
    let course = Course::new();
    course.write("race.toml", &format!("{more}\n{RACE}"));
    let all = [&["race.toml", "--out", "out", "--json", "-"], args].concat();
    // The figures of so short a race may be doubtful, so the exit status is not checked.
    let ended = course.race(&all);
    let table = course.started(course.regatta(&["report", "out"])).ended().with_status(0);
    course.assert_nothing_left();
    (table.stdout, ended.summary())
}

#[test]
fn heads_are_varied_unless_a_race_asks_for_identical_ones() {
    let (table, summary) = raced("", &[]);
    assert_eq!(summary.asked.heads.map(|heads| heads.to_string()), Some("varied".into()));
    assert!(!table.contains("identical headers"), "{table}");
    // A sample outside the load shows the reply: 131 bytes with a Date, until the time has more than ten
    // digits.
    for cell in &summary.cells {
        let reply = cell.reply.expect("a reply was seen");
        assert_eq!((reply.bytes, reply.has_date), (131, true), "{}", cell.contender);
    }
    let replies = table.lines().skip_while(|line| *line != "contenders · hello");
    let replies: Vec<Vec<&str>> = replies.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(replies[1][..3], ["contender", "reply", "Date?"], "{table}");
    assert_eq!(replies[2], ["B"], "{table}");
    assert!(replies.iter().any(|row| row.starts_with(&["epoll", "131", "yes"])), "{table}");
    for (more, args) in [("heads = 'identical'", &[][..]), ("", &["--heads", "identical"])] {
        let (table, summary) = raced(more, args);
        assert_eq!(summary.asked.heads.map(|heads| heads.to_string()), Some("identical".into()));
        assert!(table.contains("hello, with identical headers"), "{table}");
    }
}

#[test]
fn heads_is_refused_for_a_workload_without_heads() {
    let course = Course::new();
    course.write("race.toml", &format!("heads = 'varied'\n{RACE}").replace("hello", "double"));
    let ended = course.race(&["race.toml", "--out", "out"]).with_status(2);
    assert!(ended.stderr.contains("hello and hash; this race runs double"), "{}", ended.stderr);
}
