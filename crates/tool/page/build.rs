//! Looks for the programs that tests need.

fn main() {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    regatta_testkit::prerequisite::programs(&browsers);
}
