use super::*;
use zeroize::ZeroizeOnDrop;

#[test]
fn a_user_is_the_same_only_with_the_same_password() {
    let users = Users::default();
    let ann = users.get(b"ann", b"secret").unwrap();
    assert!(Arc::ptr_eq(ann.user(), users.get(b"ann", b"secret").unwrap().user()));
    for (name, password) in [("ann", "secreT"), ("ann", "secret2"), ("ann", ""), ("bob", "secret")]
    {
        let other = users.get(name.as_bytes(), password.as_bytes()).unwrap();
        assert!(!Arc::ptr_eq(ann.user(), other.user()), "{name} {password}");
    }
}

#[test]
fn users_are_limited_and_make_room_when_nothing_refers_to_them() {
    let users = Users::default();
    let get = |number: usize| users.get(format!("u{number}").as_bytes(), b"x");
    let mut all: Vec<_> = (0..MOST_USERS).map(|number| get(number).unwrap()).collect();
    assert_eq!(get(MOST_USERS).unwrap_err(), Full::Users);
    assert!(get(0).is_ok(), "one that is known");
    all.pop();
    assert!(get(MOST_USERS).is_ok());
}

/// Connections refer to them for a while.
#[test]
fn users_without_clients_make_room_the_longest_unused_first() {
    let users = Users::default();
    let get = |password: usize| users.get(b"ann", password.to_string().as_bytes());
    let mut clients: Vec<_> =
        (0..MOST_PASSWORDS).map(|password| Some(get(password).unwrap())).collect();
    let kept: Vec<_> = clients.iter().flatten().map(|login| Arc::clone(login.user())).collect();
    let is_known = |password: usize| {
        let login = get(password).unwrap();
        Arc::ptr_eq(login.user(), &kept[password])
    };
    assert!(!users.has_room(b"ann", b"9") && users.has_room(b"ann", b"0"));
    assert_eq!(get(9).unwrap_err(), Full::Passwords);
    // Two clients leave, and one of them was the only client of its user for a while once more.
    (clients[2], clients[1]) = (None, None);
    assert!(users.has_room(b"ann", b"9"));
    let _more = get(9).unwrap();
    assert!(is_known(1), "it was used after the other one");
    assert!(is_known(0) && is_known(3), "these have clients");
    assert!(!is_known(2), "it was forgotten");
}

#[test]
fn a_user_that_is_accepted_with_any_password_takes_one_more_place() {
    let users = Users::default();
    let get = |password: usize| users.get(b"default", password.to_string().as_bytes());
    let _all: Vec<_> = (0..MOST_PASSWORDS).map(|password| get(password).unwrap()).collect();
    let text = get(MOST_PASSWORDS).unwrap_err().text();
    assert!(text.starts_with("ERR the proxy serves a user with at most 4 passwords"), "{text}");
    let one = users.without_password(b"default").unwrap();
    let other = users.without_password(b"default").unwrap();
    assert!(Arc::ptr_eq(one.user(), other.user()));
    assert!(get(0).is_ok() && users.get(b"ann", b"secret").is_ok());
    assert_eq!(get(MOST_PASSWORDS).unwrap_err(), Full::Passwords);
    assert!(!Arc::ptr_eq(one.user(), users.without_password(b"ann").unwrap().user()));
}

#[test]
fn nobodys_password_differs_from_process_to_process() {
    let (one, other) = (Users::default(), Users::default());
    assert_eq!(one.nobodys_password().len(), 32);
    assert_ne!(one.nobodys_password(), other.nobodys_password());
}

#[test]
fn a_password_is_not_printed() {
    let users = Users::default();
    let ann = users.get(b"ann", b"secret").unwrap();
    let _any = users.without_password(b"ann").unwrap();
    let printed = format!("{users:?} {ann:?}");
    assert!(printed.contains("ann:***") && !printed.contains("secret"), "{printed}");
    let nobodys = std::str::from_utf8(users.nobodys_password()).unwrap();
    assert!(!printed.contains(nobodys) && !printed.contains(&format!("{:?}", nobodys.as_bytes())));
}

/// A property of the type: without unsafe code, nothing can look at memory that was freed.
#[test]
fn a_password_is_wiped() {
    fn is_wiped(_: &impl ZeroizeOnDrop) {}
    let users = Users::default();
    let ann = users.get(b"ann", b"secret").unwrap();
    is_wiped(&ann.user().password);
    is_wiped(&users.nobodys);
}
