//! Results of loads that run in several processes.

use crate::support::json;
use regatta_testkit::child::Ended;

/// Checks the result of an undisturbed load in `processes` processes.
pub fn assert_right(output: &Ended, connections: u64, processes: u64) -> serde_json::Value {
    assert_eq!(output.code(), 0, "{output:?}");
    let result = json(output);
    assert_eq!(result["connections"], connections);
    assert_eq!(result["processes"], processes);
    let errors = result["errors"].as_object().unwrap();
    assert!(errors.values().all(|n| n == 0), "{errors:?}");
    let histogram = regatta_record::decode_histogram(result["histogram"].as_str().unwrap());
    // `requests` counts replies inside the window, and the histogram has the latencies of requests sent
    // inside it. They differ by the requests in flight at its edges, at most one per connection.
    let differ = result["requests"].as_u64().unwrap().abs_diff(histogram.unwrap().len());
    assert!(differ <= connections, "{differ} of {connections}");
    result
}
