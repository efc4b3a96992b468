use super::*;

/// The order of printed flags.
const ORDER: &str = "LH UH UT LR UR UF UC UO NR DI FI RL UAEX RLSE DC URX SI IH DPE UMSDR RFCF NFCF DT UPE NC OM DF DO DR";

fn parse(text: &str) -> ResponseFlags {
    text.parse().expect("flags")
}

#[test]
fn no_flag_prints_a_dash() {
    assert_eq!(ResponseFlags::NONE.to_string(), "-");
    assert_eq!(ResponseFlags::default(), ResponseFlags::NONE);
    assert_eq!(parse("-"), ResponseFlags::NONE);
}

#[test]
fn all_flags_print_in_the_documented_order() {
    let words: Vec<&str> = ORDER.split(' ').collect();
    assert_eq!(words.len(), ResponseFlags::COUNT);
    let mut all = ResponseFlags::NONE;
    for word in words.iter().rev() {
        all |= parse(word);
    }
    assert_eq!(all.to_string(), words.join(","));
}

#[test]
fn flags_print_in_order_however_they_were_added() {
    for (added, printed) in [
        ("FI,DI", "DI,FI"),
        ("URX,UF", "UF,URX"),
        ("URX,UT", "UT,URX"),
        ("UPE,UMSDR,UC,LH", "LH,UC,UMSDR,UPE"),
        ("DC,DC", "DC"),
        ("DR,DO", "DO,DR"),
    ] {
        let flags = parse(added);
        assert_eq!(flags.to_string(), printed);
        let mut bytes = Vec::new();
        flags.append_to(&mut bytes);
        assert_eq!(bytes, printed.as_bytes());
    }
}

#[test]
fn every_flag_round_trips_through_bits_and_text() {
    for index in 0..ResponseFlags::COUNT {
        let flag = ResponseFlags::from_bits(1 << index);
        assert_eq!(parse(&flag.to_string()), flag);
        assert_eq!(ResponseFlags::from_bits(flag.bits()), flag);
        assert_eq!(flag.indexes().collect::<Vec<_>>(), [index]);
        assert_eq!(ResponseFlags::name_at(index), flag.to_string());
    }
}

#[test]
fn unknown_bits_are_dropped() {
    assert_eq!(
        ResponseFlags::from_bits(u32::MAX).names().count(),
        ResponseFlags::COUNT
    );
    assert_eq!(ResponseFlags::from_bits(1 << 31), ResponseFlags::NONE);
}

#[test]
fn sets_report_their_flags() {
    let both = ResponseFlags::UF | ResponseFlags::URX;
    assert!(both.contains(ResponseFlags::UF));
    assert!(both.contains(ResponseFlags::NONE));
    assert!(!both.contains(ResponseFlags::UF | ResponseFlags::UC));
    assert!(!both.is_empty());
    assert_eq!(
        both.long_names().collect::<Vec<_>>(),
        ["UpstreamConnectionFailure", "UpstreamRetryLimitExceeded"]
    );
}

#[test]
fn unknown_flag_names_are_rejected_by_name() {
    for (text, word) in [("XX", "XX"), ("UF,", ""), ("uf", "uf"), ("UF, UC", " UC")] {
        let refused = text.parse::<ResponseFlags>().expect_err("no such flag");
        assert_eq!(refused, UnknownFlag(word.to_owned()));
        assert!(refused.to_string().contains(&format!("`{word}`")));
    }
}
