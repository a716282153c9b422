use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LIMIT: usize = 1 << 20;

fn text_of(value: &Value) -> String {
    String::from_utf8(to_canonical(value).unwrap()).unwrap()
}

fn parse(text: &str) -> Result<Value, JsonProblem> {
    parse_strict(text.as_bytes(), LIMIT)
}

#[test]
fn numbers_print_as_in_appendix_b_of_rfc_8785() {
    for (bits, want) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(text_of(&json!(f64::from_bits(bits))), want, "{bits:016x}");
    }
}

#[test]
fn the_example_of_section_3_2_2_comes_out_as_printed_there() {
    let input = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let want = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
        \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
    assert_eq!(text_of(&serde_json::from_str(input).unwrap()), want);
}

#[test]
fn members_sort_by_utf16_code_units_as_in_section_3_2_3() {
    let input = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let canonical = text_of(&parse(input).unwrap());
    let order = ["Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"];
    let places: Vec<_> = order.iter().map(|name| canonical.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "{canonical}");
    assert!(canonical.starts_with("{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\","));
}

#[test]
fn an_integer_that_canonical_json_cannot_keep_apart_has_no_canonical_form_but_its_own_digest() {
    assert_eq!(text_of(&json!(9_007_199_254_740_991_u64)), "9007199254740991");
    for wild in [json!(9_007_199_254_740_992_u64), json!([{"a": i64::MIN}]), json!(u64::MAX)] {
        assert_eq!(to_canonical(&wild), Err(CanonicalError::InexactInteger), "{wild}");
    }
    assert_ne!(digest_of(&u64::MAX), digest_of(&(u64::MAX - 1)));
    let keyless: BTreeMap<Vec<u8>, u8> = [(Vec::new(), 1)].into();
    assert_eq!(canonical_of(&keyless), Err(CanonicalError::NotJson));
}

#[test]
fn the_strict_parser_refuses_what_has_no_single_meaning_and_says_where() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let at_64 = "/0".repeat(64);
    let mixed = format!(r#"{{"a":{}"#, r#"{"a":"#.repeat(10_000));
    let mixed_at = "/a".repeat(64);
    for (case, text, fault, pointer) in [
        ("nothing", "", JsonFault::Empty, ""),
        ("white space", " \r\n\t", JsonFault::Empty, ""),
        ("byte order mark", "\u{feff}{}", JsonFault::ByteOrderMark, ""),
        ("cut short", r#"{"a": [1, "#, JsonFault::Syntax, "/a/1"),
        ("no quotes", "{a: 1}", JsonFault::Syntax, ""),
        ("comment", "{} // done", JsonFault::TrailingData, ""),
        ("second value", "{}{}", JsonFault::TrailingData, ""),
        ("comma at the end", "[1,]", JsonFault::Syntax, "/1"),
        ("lone surrogate", r#"{"a": "\ud800"}"#, JsonFault::Syntax, "/a"),
        ("control character", "[\"\u{1}\"]", JsonFault::Syntax, "/0"),
        ("NaN", "[NaN]", JsonFault::Syntax, "/0"),
        ("leading zero", "[01]", JsonFault::Syntax, "/0"),
        ("duplicate", r#"{"a": 1, "a": 1}"#, JsonFault::DuplicateKey, "/a"),
        ("duplicate, spelt otherwise", r#"{"a": 1, "\u0061": 2}"#, JsonFault::DuplicateKey, "/a"),
        ("duplicate, deep", r#"[0, {"x/y": {"~": 1, "~": 1}}]"#, JsonFault::DuplicateKey, "/1/x~1y/~0"),
        ("65 levels", &deep(65), JsonFault::TooDeep, &at_64),
        ("10,000 levels", &deep(10_000), JsonFault::TooDeep, &at_64),
        ("10,000 objects, cut", &mixed, JsonFault::TooDeep, &mixed_at),
        ("2^53", "[9007199254740992]", JsonFault::NumberRange, "/0"),
        ("-2^53", "[-9007199254740992]", JsonFault::NumberRange, "/0"),
        ("2^53+1", r#"{"n": 9007199254740993}"#, JsonFault::NumberRange, "/n"),
        ("2^53 as a float", "9007199254740992.0", JsonFault::NumberRange, ""),
        ("more than u64", "[18446744073709551616]", JsonFault::NumberRange, "/0"),
        ("exponent", r#"{"a": {"n": 1e300}}"#, JsonFault::NumberRange, "/a/n"),
        ("more than a double", "[1, 1e400]", JsonFault::NumberRange, "/1"),
        ("more than a double, last", "-1e400", JsonFault::NumberRange, ""),
        ("more than a double, lines", "[1,\n 1e400\n]", JsonFault::NumberRange, "/1"),
    ] {
        assert_eq!(parse(text), Err(JsonProblem { pointer: pointer.to_string(), fault }), "{case}");
    }
    assert!(parse(&deep(64)).is_ok());
    assert_eq!(parse_strict(b"[\"\xff\"]", LIMIT).unwrap_err().fault, JsonFault::NotUtf8);
    assert_eq!(parse_strict(b"[1]", 2).unwrap_err().fault, JsonFault::TooLarge);
    assert!(parse_strict(b"[1]", 3).is_ok());
    let long = format!(r#"{{"{}": 1e300}}"#, "k".repeat(5000));
    assert_eq!(parse(&long).unwrap_err().pointer.chars().count(), 130);
}

#[test]
fn equal_numbers_are_one_value_however_they_are_spelt() {
    assert_eq!(
        parse("[1.0, 1e2, -0, -0.0, 9007199254740991.0]").unwrap(),
        json!([1, 100, 0, 0, 9007199254740991_i64])
    );
    assert_eq!(parse("[0.5, 5e-1, 1e-400]").unwrap(), json!([0.5, 0.5, 0]));
}

#[test]
fn a_problem_never_shows_a_value() {
    let problem = parse(r#"{"patient": "CANARY", "patient": "CANARY"}"#).unwrap_err();
    assert!(!format!("{problem} {problem:?}").contains("CANARY"));
    assert_eq!(problem.to_string(), "/patient: This name occurs twice in its object; keep one of the two.");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-MAX_INTEGER..=MAX_INTEGER).prop_map(Value::from),
        any::<f64>()
            .prop_filter_map("finite, below 2^53", |float| strict::normal_float(float).map(Value::Number)),
        (-1e9..1e9_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn parsing_the_canonical_form_and_printing_it_again_changes_nothing(value in any_value()) {
        let printed = to_canonical(&value).unwrap();
        let parsed = parse_strict(&printed, usize::MAX).unwrap();
        prop_assert_eq!(to_canonical(&parsed).unwrap(), printed.clone());
        // Spread out over lines, it is still the same value.
        let spread = parse_strict(&serde_json::to_vec_pretty(&value).unwrap(), usize::MAX).unwrap();
        prop_assert_eq!(&spread, &parsed);
        prop_assert_eq!(to_canonical(&spread).unwrap(), printed);
    }

    #[test]
    fn the_strict_parser_never_panics_and_accepts_only_what_serde_json_accepts(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            "[\\[\\]{}\",:0-9eE.+\\-\\\\nulltrefas \n]{0,48}".prop_map(String::into_bytes),
        ]
    ) {
        if let Ok(value) = parse_strict(&bytes, LIMIT) {
            prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
            prop_assert!(to_canonical(&value).is_ok());
        }
    }
}
