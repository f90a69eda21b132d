package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// TargetDigest returns the digest of an entry's target: the canonical URL, or the command with its arguments and
// working directory. It has the form "sha256:" and 64 hex digits. Transports that send POST requests to the same URL
// have the same digest.
func TargetDigest(entry servers.Config) string {
	if entry.URL != "" {
		return digest("url", CanonicalURL(entry.URL))
	}
	return digest("command", append([]string{entry.Command}, entry.Args...), entry.Cwd)
}

func digest(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return "" // strings always marshal
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// SameTarget reports whether two entries start the same command or call the same URL. It ignores the working
// directory, because a table cannot name one.
func SameTarget(a, b servers.Config) bool {
	if a.URL != "" || b.URL != "" {
		return a.URL != "" && b.URL != "" && CanonicalURL(a.URL) == CanonicalURL(b.URL)
	}
	return a.Command == b.Command && slices.Equal(a.Args, b.Args)
}

// CanonicalURL returns the canonical spelling of a URL: lower-case scheme and host, no default port, no dot segments,
// no needless escapes, no fragment, and "/" for an empty path (RFC 3986, section 6.2). URLs with the same canonical
// spelling reach the same resource. A text that is not a URL with a host is returned unchanged.
func CanonicalURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	u.Fragment, u.RawFragment, u.ForceQuery = "", "", false
	u.Scheme = strings.ToLower(u.Scheme)
	host, port := CanonicalHost(u), u.Port()
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n)
	}
	if port == defaultPorts[u.Scheme] {
		port = ""
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host = host
	if port != "" {
		u.Host += ":" + port
	}
	canonicalPath(u)
	u.RawQuery = unescapeNeedless(u.RawQuery)
	return u.String()
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443"}

// CanonicalHost returns the host name of a URL in lower case, without port, brackets and the dot at the end. An IP
// address is written in its shortest form.
func CanonicalHost(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

// canonicalPath converts the path to its canonical form. It keeps escaped slashes and empty segments, because servers
// may distinguish them.
func canonicalPath(u *url.URL) {
	var out []string
	segments := strings.Split(strings.TrimPrefix(unescapeNeedless(u.EscapedPath()), "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		if s == ".." && len(out) > 0 {
			out = out[:len(out)-1]
		}
		switch {
		case s != "." && s != "..":
			out = append(out, s)
		case last:
			out = append(out, "")
		}
	}
	p := "/" + strings.Join(out, "/")
	if plain, err := url.PathUnescape(p); err == nil {
		u.Path, u.RawPath = plain, p
	}
}

// unescapeNeedless decodes escapes of characters that never need one and writes all
// others with upper-case digits.
func unescapeNeedless(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		n, err := uint64(0), error(nil)
		if s[i] != '%' || i+2 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		if n, err = strconv.ParseUint(s[i+1:i+3], 16, 8); err != nil {
			b.WriteByte(s[i])
			continue
		}
		if c := byte(n); tree.IsName(string(rune(c))) || c == '~' {
			b.WriteByte(c)
		} else {
			b.WriteString(strings.ToUpper(s[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// HasPlainHost reports whether the host of a URL is written in ASCII. Any other host has several spellings, and a
// rule may use another one.
func HasPlainHost(u *url.URL) bool {
	return strings.IndexFunc(u.Host, func(r rune) bool { return r > '~' }) < 0
}
