//! The profile `json`: each expected body follows from the dataset of the checkout.

use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How many items are requested, and the multiplier of their totals: the fixed pairs of HttpArena
/// (`scripts/lib/tools/gcannon.sh`; the profile's documentation).
const PAIRS: [(usize, i64); 7] = [(1, 3), (5, 7), (10, 2), (15, 5), (25, 4), (40, 8), (50, 6)];

/// The members of an item, which the reply repeats.
const MEMBERS: [&str; 8] =
    ["id", "name", "category", "price", "quantity", "active", "tags", "rating"];

/// Returns the `[[request]]` of the profile. The error says why it is left out.
pub fn requests(data: &[u8]) -> Result<String, String> {
    let wrong = |why: &str| format!("data/dataset.json {why}");
    let items: Vec<Map<String, Value>> =
        serde_json::from_slice(data).map_err(|_| wrong("is not a list of objects in JSON"))?;
    let most = PAIRS.map(|(count, _)| count).into_iter().max().unwrap_or(0);
    if items.len() < most {
        return Err(wrong(&format!("has {} items; expected at least {most}", items.len())));
    }
    let mut text = String::new();
    for (count, multiplier) in PAIRS {
        let with_total = |item: &Map<String, Value>| with_total(item, multiplier);
        let items: Result<Vec<Value>, String> = items[..count].iter().map(with_total).collect();
        let body = json!({ "items": items.map_err(|why| wrong(&why))?, "count": count });
        // As TOML, which has its own escapes.
        let body = Value::from(body.to_string()).to_string();
        let _ = write!(
            text,
            "\n[[request]]\npath = \"/json/{count}?m={multiplier}\"\nstatus = 200\n\
             expect_headers = {{ Content-Type = {{ regex = \"(?i)application/json.*\" }} }}\n\
             json_equals = {body}\n"
        );
    }
    Ok(text)
}

/// Returns an item with its total.
fn with_total(item: &Map<String, Value>, multiplier: i64) -> Result<Value, String> {
    let has_all = MEMBERS.iter().all(|name| item.contains_key(*name));
    if !has_all || item.len() != MEMBERS.len() {
        return Err(format!("has an item whose members are not {}", MEMBERS.join(", ")));
    }
    let integer = |name: &str| item[name].as_i64();
    let total = integer("price")
        .zip(integer("quantity"))
        .and_then(|(price, quantity)| price.checked_mul(quantity)?.checked_mul(multiplier));
    let total = total.ok_or("has an item whose price or quantity is not an integer")?;
    let mut item = item.clone();
    item.insert("total".into(), total.into());
    Ok(item.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_script::Workload;

    fn items(n: usize) -> Vec<Value> {
        let item = |id: usize| {
            json!({ "id": id, "name": "A \"b\" \\ é\n", "category": "c", "price": 328, "quantity": 15,
                    "active": true, "tags": ["fast"], "rating": { "score": 48, "count": 127 } })
        };
        (1..=n).map(item).collect()
    }

    #[test]
    fn totals_are_products_and_the_workload_is_valid() {
        let text = requests(&serde_json::to_vec(&items(50)).unwrap()).unwrap();
        let file = format!("protocol = \"http\"\n{text}");
        Workload::from_text(&file, "json").unwrap();
        let file: toml::Table = toml::from_str(&file).unwrap();
        let requests = file["request"].as_array().unwrap();
        assert_eq!(requests.len(), 7);
        let body = requests[1]["json_equals"].as_str().unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["count"], body["items"].as_array().unwrap().len()), (&json!(5), 5));
        assert_eq!(body["items"][4]["total"], json!(328 * 15 * 7));
        assert_eq!(body["items"][4]["name"], json!("A \"b\" \\ é\n"));
    }

    #[test]
    fn a_dataset_of_another_form_is_left_out_with_the_reason() {
        let of = |items: Vec<Value>| requests(&serde_json::to_vec(&items).unwrap()).unwrap_err();
        let with = |name: &str, value: Value| {
            let mut items = items(50);
            items[49][name] = value;
            of(items)
        };
        assert_eq!(of(items(49)), "data/dataset.json has 49 items; expected at least 50");
        assert!(with("price", json!(1.5)).ends_with("price or quantity is not an integer"));
        assert!(with("quantity", json!(i64::MAX)).ends_with("is not an integer"));
        assert!(with("more", json!(1)).contains("an item whose members are not id, name"));
        assert_eq!(
            requests(b"{}").unwrap_err(),
            "data/dataset.json is not a list of objects in JSON"
        );
    }
}
