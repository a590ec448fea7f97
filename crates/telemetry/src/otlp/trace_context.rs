//! The place of a span in its trace, as W3C Trace Context writes it (`traceparent`).

use std::fmt;

/// The identity of a span in its trace, which a called service uses as its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    /// True if the service that began the trace samples it.
    pub(crate) is_sampled: bool,
}

/// `version-trace-span-flags`, each in hexadecimal.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

impl TraceContext {
    /// Reads the value of a `traceparent` header. Returns `None` if it is invalid. The beginning of an
    /// unknown version is read like version 00.
    pub fn parse(text: &str) -> Option<Self> {
        let known = text.get(..LENGTH)?;
        let mut parts = known.split('-');
        let version = parse_hex::<1>(parts.next()?)?;
        let trace = parse_hex(parts.next()?)?;
        let span = parse_hex(parts.next()?)?;
        let [flags] = parse_hex(parts.next()?)?;
        let rest = &text[LENGTH..];
        let is_whole = match version {
            [0] => rest.is_empty(),
            [0xff] => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let is_one = is_whole && trace != [0; 16] && span != [0; 8] && parts.next().is_none();
        is_one.then_some(Self {
            trace,
            span,
            is_sampled: flags & 1 == 1,
        })
    }

    /// Returns true if child spans are sampled.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Makes a child of this span, or the first span of a trace. Returns `None` if the system provides
    /// no random numbers.
    pub(crate) fn begin(parent: Option<Self>) -> Option<Self> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).ok()?;
        let (trace, span) = random.split_at(16);
        Some(Self {
            trace: parent.map_or_else(|| trace.try_into().ok(), |it| Some(it.trace))?,
            span: span.try_into().ok()?,
            is_sampled: true,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (hex::encode(self.trace), hex::encode(self.span));
        write!(f, "00-{trace}-{span}-{:02x}", u8::from(self.is_sampled))
    }
}

/// Reads hexadecimal digits. Upper case is not allowed.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    let has_upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
    (!has_upper).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_read_is_written_the_same() {
        let context = TraceContext::parse(GOOD).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), GOOD);
        let unsampled = GOOD.replace("-01", "-02");
        assert!(!TraceContext::parse(&unsampled).unwrap().is_sampled());
        let later = format!("01{}-more", &GOOD[2..]);
        assert_eq!(TraceContext::parse(&later), Some(context));
    }

    #[test]
    fn what_is_none_is_not_read() {
        for bad in [
            String::new(),
            GOOD[..GOOD.len() - 1].to_owned(),
            format!("{GOOD}-more"),
            format!("ff{}", &GOOD[2..]),
            GOOD.to_uppercase(),
            GOOD.replace('-', "_"),
            GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            GOOD.replace("4bf9", "+bf9"),
            "é".repeat(30),
        ] {
            assert_eq!(TraceContext::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_child_is_in_the_trace_of_its_parent() {
        let parent = TraceContext::parse(GOOD).unwrap();
        let child = TraceContext::begin(Some(parent)).unwrap();
        assert!(child.trace == parent.trace && child.span != parent.span);
        let first = TraceContext::begin(None).unwrap();
        assert!(first.trace != parent.trace && first.is_sampled());
    }
}
