//! Scripts that repeat, and where their conversations start.

use super::*;

#[test]
fn a_pipeline_longer_than_the_script_repeats_it_more_than_once() {
    let mut script = Script::new(Conversations::Each(1));
    script.push(b"a\n", b"A\n");
    script.push(b"bb\n", b"BB\n");
    script.close(5).unwrap();
    assert_eq!((script.count(), script.period()), (2, Begin { request: 5, reply: 5 }));
    assert_eq!((script.request(6), script.reply(5)), (&b"a\n"[..], &b"BB\n"[..]));
}

#[test]
fn finds_the_next_start_of_a_conversation() {
    let with = |conversations| {
        let mut script = Script::new(conversations);
        for i in 0..6 {
            if [0, 1, 5].contains(&i) {
                script.begin_conversation();
            }
            script.push(b"\n", b"\n");
        }
        script.close(4).unwrap();
        script
    };
    let of = |script: &Script| [0, 1, 2, 3, 5, 6, 7, 9].map(|i| script.conversation_from(i));
    assert_eq!(of(&with(Conversations::Each(1))), [0, 1, 2, 3, 5, 0, 1, 3]);
    assert_eq!(of(&with(Conversations::Each(2))), [0, 2, 2, 4, 0, 0, 2, 4]);
    assert_eq!(of(&with(Conversations::At(vec![]))), [0, 1, 5, 5, 5, 0, 1, 5]);
}

#[test]
fn a_tail_that_does_not_fit_is_refused() {
    let mut script = Script::new(Conversations::Each(1));
    script.push(&vec![b'x'; 1 << 20], b"\n");
    assert_eq!(script.close(2_000), Err(TooLarge));
}
