package transport

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
)

const masked = "***"

var urlInText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)
})

// MaskURL returns the URL without credentials: it masks the userinfo, the values of the query and the
// fragment (http://***@host/mcp?token=***). Text that is not a valid URL is masked as far as it looks like
// one.
func MaskURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", text
	}
	// An invalid URL may contain a password with a slash, so everything before the last @ may be secret. The
	// path of a valid URL contains no userinfo.
	end := len(rest)
	if _, err := url.Parse(text); err == nil {
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			end = i
		}
	}
	if i := strings.LastIndexByte(rest[:end], '@'); i >= 0 {
		rest = masked + rest[i:]
	}
	rest, _, fragment := strings.Cut(rest, "#")
	rest, query, asked := strings.Cut(rest, "?")
	if asked {
		pairs := strings.Split(query, "&")
		for i, pair := range pairs {
			if name, _, ok := strings.Cut(pair, "="); ok {
				pairs[i] = name + "=" + masked
			} else if pair != "" { // may be a token without a name
				pairs[i] = masked
			}
		}
		rest += "?" + strings.Join(pairs, "&")
	}
	if fragment {
		rest += "#" + masked
	}
	return scheme + rest
}

// MaskURLs masks each URL in a text, such as a command line or a message. See [MaskURL].
func MaskURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlInText().ReplaceAllStringFunc(text, func(found string) string {
		address := strings.TrimRight(found, ":,;") // these belong to the sentence
		return MaskURL(address) + found[len(address):]
	})
}
