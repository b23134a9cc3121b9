//! An echo server written as if it had a thread per connection.
//!
//! `cargo run --release -p regatta-green --example echo -- 127.0.0.1:7777`

use regatta_green as green;
use std::io::{self, Read, Write};
use std::time::Duration;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = std::net::TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    green::run(green::Config::default(), move || {
        if let Err(error) = serve(listener) {
            eprintln!("echo: {error}");
        }
    })
}

fn serve(listener: std::net::TcpListener) -> io::Result<()> {
    let listener = green::TcpListener::from_std(listener)?;
    loop {
        match listener.accept() {
            Ok((stream, peer)) => green::spawn(move || {
                if let Err(error) = echo(stream) {
                    eprintln!("echo: {peer}: {error}");
                }
            })?,
            Err(error) => {
                // Most likely descriptors have run out: wait until some connections close.
                eprintln!("echo: accept: {error}");
                green::sleep(Duration::from_millis(10));
            }
        }
    }
}

fn echo(mut stream: green::TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}
