fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = protox::compile(["../helloworld.proto"], [".."])?;
    println!("cargo::rerun-if-changed=../helloworld.proto");
    tonic_prost_build::configure().build_client(false).compile_fds(service)?;
    Ok(())
}
