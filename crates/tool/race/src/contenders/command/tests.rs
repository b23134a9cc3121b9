use super::*;

fn names_of(texts: &[&str]) -> Vec<String> {
    let commands: Vec<Command> = texts.iter().map(|t| Command::parse(t).unwrap()).collect();
    names(&commands, &["null"])
}

#[test]
fn a_command_has_variables_an_image_and_words() {
    let command = Command::parse("PORT={port} A=b image:x/y:1 ./run 'a b' C=d").unwrap();
    assert_eq!(command.env["PORT"], "{port}");
    assert_eq!((command.env.len(), command.image.as_deref()), (2, Some("x/y:1")));
    assert_eq!(command.start, ["./run", "a b", "C=d"]);
    assert!(command.has_port() && !Command::parse("./run").unwrap().has_port());
    assert!(Command::parse("./run 'a").unwrap_err().contains("missing closing quote"));
}

#[test]
fn a_name_is_that_of_the_program_and_what_differs() {
    for (texts, expected) in [
        (["./old --port {port}", "./new --port {port}"], ["old", "new"]),
        (["a/server {port}", "b/server {port}"], ["server-a", "server-b"]),
        (["python3 old.py {port}", "python3 new.py {port}"], ["python3-old.py", "python3-new.py"]),
        (["./x --threads 4 {port}", "./x --threads 8 {port}"], ["x-threads-4", "x-threads-8"]),
        (["./x -t=4 {port}", "./x -t=8 {port}"], ["x-t-4", "x-t-8"]),
        (["./x {port}", "./x --fast {port}"], ["x", "x-fast"]),
        (["MODE=a ./x {port}", "MODE=b ./x {port}"], ["x-MODE-a", "x-MODE-b"]),
        (["sh -c 'exec ./old {port}'", "sh -c './new {port}'"], ["old", "new"]),
        (["image:r/a:1 {port}", "image:r/a:2 {port}"], ["a-1", "a-2"]),
        (["./x {port}", "./x {port}"], ["x", "x-2"]),
        (["./null {port}", "'/' {port}"], ["null-2", "server"]),
        (["./x {port}", "./x-twin {port}"], ["x", "x-twin-2"]),
    ] {
        assert_eq!(names_of(&texts), expected, "{texts:?}");
    }
    let many = names_of(&["./x 1 {port}", "./x 2 {port}", "./x 1 {port}"]);
    assert_eq!(many, ["x-1", "x-2", "x-1-2"]);
}

#[test]
fn hostile_commands_have_short_names_of_harmless_characters() {
    let long = format!("./x {} {{port}}", "<b>&\u{1b}[31m".repeat(50));
    for name in names_of(&[&long, "./x 'a\nb' {port}", "'$(rm -rf)' {port}"]) {
        assert!(name.len() <= 40, "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c)), "{name:?}");
    }
}
