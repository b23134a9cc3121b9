//! Every model answers the transcripts, shared and by hand.

mod support;
mod transcript;

use std::{path::Path, process::Command, thread};
use support::{MODELS, Server};

fn all_models_answer(workload: &str, forms: &[&[&str]]) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(workload);
    let transcripts = transcript::load_dir(&dir);
    let failures: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = MODELS
            .iter()
            .flat_map(|model| forms.iter().map(move |form| (model, form)))
            .map(|(model, form)| {
                let transcripts = &transcripts;
                scope.spawn(move || {
                    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
                    command.args(["serve", workload, "--model", model]).args(*form);
                    let mut server = Server::start(command);
                    let wrong: Vec<_> = transcripts
                        .iter()
                        .filter_map(|t| transcript::play(t, server.addr).err())
                        .map(|why| format!("{model} {form:?}: {why}"))
                        .collect();
                    server.signal("-TERM");
                    assert_eq!(server.ended().code(), Some(0));
                    wrong
                })
            })
            .collect();
        running.into_iter().flat_map(|r| r.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_model_answers_the_transcripts_of_double() {
    all_models_answer("double", &[&[], &["--by-hand"]]);
}

#[test]
fn every_model_answers_the_transcripts_of_the_dialogue() {
    all_models_answer("dialogue", &[&["--by-hand"]]);
}
