//! The forms of the tokens of well-known services, as regular expressions.

/// The service of a token, and a pattern whose every match begins with letters that name the service. The
/// pattern is to be placed after a word boundary, with Unicode classes off. Each match has at least
/// [`TOKEN_CHARS_MIN`] characters out of letters, digits and `_-./+=`.
pub const TOKEN_PATTERNS: [(&str, &str); 33] = [
    ("jwt", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),
    ("github token", r"(?:gh[opusr]_\w{16,}|github_pat_\w{16,})"),
    (
        "gitlab token",
        r"(?:glpat|gloas|gldt|glrt|glcbt|glptt|glft|glimt|glagent|glwt|glsoat)-[\w.-]{16,}",
    ),
    (
        "slack token",
        r"(?:xox[a-z](?:\.xox[a-z])?-[\w-]{8,}|xapp-[\w-]{8,})",
    ),
    (
        "stripe key",
        r"(?:(?:rk|sk|pk)_(?:live|test)_\w{8,}|whsec_[\w+/=]{16,})",
    ),
    ("api key", r"sk-[\w-]{12,}"),
    (
        "aws key",
        r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA)[A-Z0-9]{12,}",
    ),
    (
        "google key",
        r"(?:AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}|1//0[\w-]{20,})",
    ),
    ("npm token", r"npm_\w{16,}"),
    ("pypi token", r"pypi-[\w-]{16,}"),
    ("rubygems key", r"rubygems_[0-9a-f]{32,}"),
    ("docker token", r"(?:dckr_pat|dckr_oat)_[\w-]{16,}"),
    (
        "model provider key",
        r"(?:hf_\w{16,}|r8_\w{20,}|gsk_\w{20,}|xai-\w{20,}|pplx-\w{20,}|tvly-[\w-]{16,}|nvapi-[\w-]{20,})",
    ),
    ("sendgrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("mailgun key", r"key-[0-9a-f]{32}"),
    ("twilio key", r"SK[0-9a-f]{32}"),
    ("digitalocean token", r"(?:dop|doo|dor)_v1_[0-9a-f]{16,}"),
    ("linear key", r"(?:lin_api|lin_oauth)_\w{16,}"),
    ("notion token", r"(?:ntn|secret)_\w{16,}"),
    ("sentry token", r"(?:sntrys|sntryu)_[\w+/=-]{16,}"),
    ("figma token", r"figd_[\w-]{16,}"),
    (
        "shopify token",
        r"(?:shpat|shpca|shppa|shpss)_[0-9a-fA-F]{16,}",
    ),
    ("databricks token", r"dapi[0-9a-f]{32}"),
    ("vault token", r"(?:hvs|hvb|hvr)\.[\w-]{16,}"),
    ("supabase token", r"sbp_[0-9a-f]{16,}"),
    ("hubspot token", r"pat-[a-z]{2}\d-[\w-]{16,}"),
    ("airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{16,}"),
    ("apify token", r"apify_api_\w{16,}"),
    ("atlassian token", r"(?:ATATT3|ATCTT3)[\w=-]{16,}"),
    ("facebook token", r"EAA[A-Za-z0-9_-]{24,}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    (
        "infrastructure token",
        r"(?:ops_eyJ[\w-]{16,}|fo1_[\w-]{20,}|dp\.[a-z]{2,5}\.\w{20,}|pul-[0-9a-f]{32,}|nfp_\w{16,})",
    ),
    (
        "service key",
        r"(?:PMAK-[0-9a-f-]{32,}|NRAK-[A-Z0-9]{20,}|glsa_\w{20,}|CFPAT-[\w-]{20,}|sq0[a-z]{3}-[\w-]{20,}|rzp_(?:live|test)_\w{8,})",
    ),
];

/// The characters of the shortest token.
pub const TOKEN_CHARS_MIN: usize = 13;
