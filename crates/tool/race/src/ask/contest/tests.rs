use super::*;

#[test]
fn the_bundled_races_can_be_read() {
    for (name, _) in bundled::RACES {
        assert_eq!(Contest::find(name).unwrap().name, name);
    }
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    let double = Contest::find("double").unwrap();
    let (loads, left_out) = double.loads(&cpus);
    assert_eq!((loads.len(), left_out.len()), (10, 0));
    assert!(double.rounds >= 5);
    let models = Contest::find("models").unwrap();
    assert_eq!(models.loads(&cpus).0.len(), 9);
    for race in [double, models] {
        // One more, at a rate that the pilot pass determines.
        assert_eq!(race.pilot_loads(&cpus), [LoadShape::closed(64, 1)]);
    }
}

#[test]
fn several_workloads_may_share_a_service() {
    let (hub, echo) = (Contest::find("hub").unwrap(), Contest::find("hub-echo").unwrap());
    assert_eq!((hub.service(), echo.service()), ("hub".into(), "hub".into()));
    assert_eq!(echo.workload, "hub-echo");
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    let then = hub.then(&cpus, &hub.loads(&cpus).0);
    let bounded = |load: &LoadShape| load.drive == bounded(4);
    assert!(then.len() >= 5 && then.iter().all(|then| then.loads.iter().all(bounded)));
}

#[test]
fn historic_figures_belong_to_their_loads() {
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    let double = Contest::find("double").unwrap();
    let (loads, _) = double.loads(&cpus);
    let then = double.then(&cpus, &loads);
    let of = |name: &str, cores| {
        let load =
            loads.iter().find(|l| l.drive.burst().is_some() && l.cores == Some(cores)).unwrap();
        let found = then.iter().find(|t| t.contender == name && t.loads.contains(load));
        found.and_then(|then| then.figure.as_deref())
    };
    assert_eq!(
        [of("haskell-conduit", 1), of("haskell-conduit", 2)],
        [Some("8.0 s"), Some("5.30 s")]
    );
    assert_eq!([of("node", 1), of("node", 2)], [Some("8.94 s"); 2]);
    assert_eq!([of("node-cluster", 1), of("node-cluster", 2)], [None, Some("5.50 s")]);
    assert!(then.iter().all(|then| then.loads.iter().all(|load| load.drive.burst().is_some())));
}

#[test]
fn hello_and_hash_have_the_loads_of_their_articles() {
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    let loads_of = |name: &str| -> Vec<String> {
        let loads = Contest::find(name).unwrap().loads(&cpus).0;
        loads.iter().map(ToString::to_string).collect()
    };
    let hello = Contest::find("hello").unwrap();
    assert_eq!(loads_of("hello")[..2], ["100 conn, churn, 1000 requests", "64 conn, churn"]);
    assert_eq!(hello.pilot_loads(&cpus), [LoadShape::closed(64, 1)]);
    let then = hello.then(&cpus, &hello.loads(&cpus).0);
    let figure = |name: &str| then.iter().find(|t| t.contender == name).unwrap();
    assert_eq!(figure("tornado").figure.as_deref(), Some("2480 /s"));
    assert!(figure("libev").figure.is_none() && figure("libev").note.is_some());
    assert!(then.iter().all(|t| t.loads.len() == 1 && t.loads[0].requests == Some(1_000)));

    let counted = ["300 conn, 2000 requests, n=1", "300 conn, 300 requests, n=1000"];
    assert_eq!(loads_of("hash")[..2], counted);
    // Cold starts first, then warm servers.
    assert_eq!(loads_of("hash")[2..], ["300 conn, n=1", "8 conn, n=1000", "5000 conn, n=1"]);
    let hash = Contest::find("hash").unwrap();
    let then = hash.then(&cpus, &hash.loads(&cpus).0);
    for name in ["php-apache", "tomcat", "node", "go"] {
        let words = then.iter().filter(|t| t.contender == name && t.figure.is_none());
        assert_eq!(words.count(), 3, "{name} under each load");
    }
    let fair = "100 conn, 200/s, n=1, beside 8 conn with n=1000";
    assert_eq!(loads_of("fairness"), [fair]);
    assert_eq!(loads_of("hash-quick").last().map(String::as_str), Some(fair));
    assert_eq!(loads_of("readiness").len(), 4);
    let largest = Contest::find("readiness").unwrap().loads(&cpus).0[2];
    assert_eq!(largest.max_open_connections(), 1_000, "within the limit of select");
}

#[test]
fn every_key_of_a_race_file_has_a_default() {
    let race = Contest::parse("", "races/mine.toml").unwrap();
    assert_eq!((race.name.as_str(), race.workload.as_str()), ("mine", "double"));
    assert_eq!((race.rounds, race.window, race.warm_up), (5, second(), second()));
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    assert_eq!(race.loads(&cpus).0, [LoadShape::closed(64, 1)]);
    assert!(!race.bundled && Contest::find("double").unwrap().bundled);
    let deep = Contest::parse("[[load]]\npipeline = 16\n", "x").unwrap();
    assert_eq!(deep.loads(&cpus).0, [LoadShape::closed(64, 16)]);
    let named = Contest::parse("name = 'other'", "mine.toml").unwrap();
    assert_eq!(named.name, "other");
}

#[test]
fn a_missing_key_is_named_with_the_line_of_its_table() {
    for (text, said) in [
        ("rounds = 3\n\n[[contender]]\nname = 'a'\nstart = ['a', '{port}']\n", "`about`"),
        ("then_source = 'x'\n\n[[then]]\nfigure = '1 s'\n", "`contender`"),
    ] {
        let error = Contest::parse(text, "mine.toml").unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains(said), "{error}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let valid = "name='x'\nworkload='double'\nrounds=1\nwindow='1s'\nwarm_up='0s'\n";
    let load = "[[load]]\nconnections=1\n";
    assert!(Contest::parse(&format!("{valid}{load}"), "x").is_ok());
    for (text, said) in [
        (format!("{valid}load=[]"), "no load"),
        (format!("{valid}{load}pipeline=0"), "at least 1"),
        (format!("{valid}{load}pipeline=2\nchurn=true"), "churn"),
        (format!("{valid}{load}conections=2"), "did you mean `connections`?"),
        (format!("{valid}round=2\n{load}"), "line 6, column 1"),
        (format!("{valid}round=2\n{load}"), "did you mean `rounds`?"),
        (format!("{valid}{load}burst={{instances=2,requests=1}}"), "among 2 instances"),
        (
            format!("{valid}{load}[[then]]\ncontender='a'\nfigure='1 s'"),
            "`then` needs `then_source`",
        ),
        (
            format!(
                "{valid}then_source='x'\n{load}[[then]]\ncontender='a'\nfigure='1 s'\nload={{core=1}}"
            ),
            "unknown field `core`",
        ),
        (
            format!("{valid}then_source='x'\n{load}[[then]]\ncontender='a'"),
            "`then` needs a `figure` or a `note`",
        ),
        (
            format!("{valid}{load}n=5"),
            "`n` applies only to the workload hash; this race runs double",
        ),
        (
            format!("{valid}{load}passing=[0, 5]"),
            "`passing` applies only to the workloads hub and hub-echo; this race runs double",
        ),
        (
            format!("{valid}{load}idle=1\nstalled=1"),
            "`stalled` applies only to the workloads hub and hub-echo",
        ),
        (
            format!(
                "{valid}{load}[[contender]]\nname='a'\nabout=''\nworkloads=['double']\nstart=['a']"
            ),
            "a is not given its port",
        ),
        (format!("{valid}{load}").replace("1s", "1"), "unit"),
        (format!("{valid}{load}").replace("1s", "1ms"), "50ms"),
        (format!("{valid}{load}").replace("rounds=1", "rounds=0"), "at least 5"),
    ] {
        let error = Contest::parse(&text, "mine.toml").unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("mine.toml"), "{error}");
    }
    assert!(Contest::find("dubble").unwrap_err().to_string().contains("quick, double"));
    assert!(Contest::find("no/such.toml").unwrap_err().to_string().contains("no/such.toml"));
}

#[test]
fn from_another_machine_loads_that_are_raced_in_rounds_are_left_out() {
    let contest = Contest::find("hello").unwrap();
    let here = CpuSets { server: vec![0], load: vec![1], ..CpuSets::default() };
    let apart = CpuSets { apart: true, ..here.clone() };
    let ((all, none), (some, left_out)) = (contest.loads(&here), contest.loads(&apart));
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(all.len(), some.len() + left_out.len());
    assert!(some.iter().all(LoadShape::allows_duels) && !some.is_empty(), "{some:?}");
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(left_out[0].contains("1000 requests: it is raced in rounds"), "{left_out:?}");
}
