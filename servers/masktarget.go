package servers

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/transport"
)

// A person who reads an entry wants to see its address and its command line as they are written, but no credential in
// them. References such as ${NAME} contain none, and remain.

var tokenPrefixes = []string{"sk-", "sk_live_", "rk_live_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-",
	"xoxb-", "xoxp-",
	"xapp-", "AKIA", "ASIA", "AIza", "ya29.", "npm_", "hf_", "pypi-", "SG.", "eyJ", "dop_v1_", "shpat_", "tvly-"}

// LooksLikeToken reports whether a literal is probably a secret: it begins like the tokens of well-known services and
// is long enough. An Authorization scheme may precede it.
func LooksLikeToken(s string) bool {
	for _, scheme := range []string{"Bearer ", "bearer ", "Basic ", "Token ", "token "} {
		if rest, ok := strings.CutPrefix(s, scheme); ok {
			return len(strings.TrimSpace(rest)) >= 8 && !strings.Contains(rest, "${")
		}
	}
	return len(s) >= 16 && !strings.ContainsAny(s, " $") &&
		slices.ContainsFunc(tokenPrefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

const hiddenValue = "***"

var (
	writtenURL = lazyregexp.New(`[A-Za-z][A-Za-z0-9+.-]*://(?:\$\{[^}]*\}|[^\s"'<>])+`)
	reference  = lazyregexp.New(`\$\{[^}]*\}`)
)

// MaskArgs returns the arguments of a command with the literal values of flags such as --api-key, tokens of well-known
// services, and the passwords of URLs and of other texts masked.
func MaskArgs(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		name, value, found := argSecret(args, i)
		switch {
		case found && MaskValue(value, name) != value:
			out[i] = strings.TrimSuffix(arg, value) + MaskValue(value, name)
		default:
			out[i] = MaskValue(arg)
		}
	}
	return out
}

// isName reports whether a text can be the name of a variable, as in env API_KEY=value.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// isLiteral reports whether a value is written in place, without a reference or an expression of a template.
func isLiteral(value string) bool {
	_, expression, _ := strings.Cut(value, "{{")
	return value != "" && value != hiddenValue && !strings.Contains(value, "${") && !strings.Contains(expression, "}}")
}

// MaskAddresses masks the credentials of each URL in a text: the user and the password, and values of the query and of
// the fragment that are secrets by their names or forms. The rest of the URL remains as it is written.
func MaskAddresses(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return writtenURL().ReplaceAllStringFunc(text, func(found string) string {
		address := strings.TrimRight(found, ":,;") // these belong to the sentence
		return maskAddress(address) + found[len(address):]
	})
}

func maskAddress(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	if i := loginEnd(scheme, rest); i >= 0 {
		rest = maskLogin(rest[:i]) + rest[i:]
	}
	text = scheme + "://" + rest
	if hasQuery {
		text += "?" + maskPairs(query)
	}
	if hasFragment {
		text += "#" + maskPairs(fragment)
	}
	return text
}

// loginEnd returns the index of the @ after the login of a URL, in the part after :// and before its query, or -1.
func loginEnd(scheme, rest string) int {
	end := len(rest)
	// A password with a slash makes the URL invalid. Then everything before the last @ may be secret.
	plain := reference().ReplaceAllStringFunc(rest, func(s string) string { return strings.Repeat("1", len(s)) })
	if _, err := url.Parse(scheme + "://" + plain); err == nil {
		if i := strings.IndexByte(plain, '/'); i >= 0 {
			end = i
		}
	}
	return strings.LastIndexByte(plain[:end], '@')
}

// maskLogin masks the part of a URL before the @. It leaves references, and what a shell would run.
func maskLogin(login string) string {
	parts := strings.SplitN(login, ":", 2)
	if !strings.Contains(login, "${") {
		parts = []string{login}
	}
	for i, part := range parts {
		if part != "" && !mayRun(part) && reference().ReplaceAllString(part, "") != "" {
			parts[i] = hiddenValue
		}
	}
	return strings.Join(parts, ":")
}

// mayRun reports whether a text, without its references, contains characters with a meaning for a shell. A person
// who reads an entry must see them.
func mayRun(text string) bool {
	return strings.ContainsAny(reference().ReplaceAllString(text, ""), "$`(){};|<>\\")
}

// maskPairs masks values of a query.
func maskPairs(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if ok && isLiteral(value) && !mayRun(value) && (NamesSecret(name) || LooksLikeToken(value)) {
			pairs[i] = name + "=" + hiddenValue
		} else if !ok && LooksLikeToken(pair) {
			pairs[i] = hiddenValue
		}
	}
	return strings.Join(pairs, "&")
}

// target returns the command line or URL that identifies the server to a person, without credentials.
func (s *Server) target() string {
	if s.cfg.Transport == TransportStdio {
		line := strings.Join(append([]string{s.cfg.Command}, MaskArgs(s.cfg.Args)...), " ")
		return s.masked(transport.MaskURLs(line))
	}
	return s.masked(transport.MaskURL(s.cfg.URL))
}
