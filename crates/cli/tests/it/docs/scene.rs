//! The folder in which the commands of a page run.

use crate::support::docs::scene::Scene;

#[test]
fn a_port_is_the_same_in_the_whole_page() {
    let mut scene = Scene::new();
    let text = scene.with_free_ports("--listen 127.0.0.1:4000 --other localhost:80x");
    let port = text["--listen 127.0.0.1:".len()..].split(' ').next().unwrap().to_owned();
    assert_ne!(port, "4000");
    assert_eq!(
        scene.with_free_ports("redis-cli -p 4000 14000"),
        format!("redis-cli -p {port} 14000")
    );
    assert_eq!(scene.stop(), [""; 0]);
}

#[test]
fn a_server_is_stopped_and_another_process_is_reported() {
    let mut scene = Scene::new();
    let ended = scene.run("regatta serve double --listen 127.0.0.1:4000\nsleep 60 &\n", &[]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("listening on 127.0.0.1:"), "{}", ended.stdout);
    let wrong = scene.stop();
    assert!(matches!(&wrong[..], [one] if one.contains("sleep 60")), "{wrong:?}");
}
