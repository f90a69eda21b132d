package awsauth

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// Credentials are the keys that sign requests.
type Credentials struct {
	AccessKey string
	Secret    tenon.Secret
	Token     tenon.Secret // for temporary credentials; zero for keys of a user
	Expires   time.Time    // zero if they do not expire
}

const (
	algorithm = "AWS4-HMAC-SHA256"
	stamp     = "20060102T150405Z"
	day       = "20060102"
)

// EmptyHash is the hash of an empty body.
const EmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// unsigned are headers that are not signed, because clients and proxies add or change them.
var unsigned = []string{"Authorization", "User-Agent", "Accept", "Accept-Encoding", "Connection", "Expect",
	"Transfer-Encoding", "X-Amzn-Trace-Id"}

// Sign adds the headers X-Amz-Date, X-Amz-Security-Token and Authorization to a request. hash is the SHA-256 of the
// body in hexadecimal digits.
func Sign(r *http.Request, hash string, c Credentials, region, service string, now time.Time) {
	r.Header.Set("X-Amz-Date", now.UTC().Format(stamp))
	if !c.Token.IsZero() {
		r.Header.Set("X-Amz-Security-Token", c.Token.Reveal())
	}
	host := cmp.Or(r.Host, r.URL.Host)
	in := signed{method: r.Method, path: r.URL.EscapedPath(), query: r.URL.RawQuery, host: host, header: r.Header,
		hash: hash}
	r.Header.Set("Authorization", in.authorization(c, region, service, now))
}

// signed is the part of a request that a signature covers.
type signed struct {
	method, path, query, host string // the path and the query as they are sent
	header                    http.Header
	hash                      string
}

func (s *signed) authorization(c Credentials, region, service string, now time.Time) string {
	names, canonical := s.canonical()
	scope := now.UTC().Format(day) + "/" + region + "/" + service + "/aws4_request"
	sum := sha256.Sum256([]byte(canonical))
	text := algorithm + "\n" + now.UTC().Format(stamp) + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + c.Secret.Reveal())
	for _, part := range []string{now.UTC().Format(day), region, service, "aws4_request"} {
		key = mac(key, part)
	}
	return algorithm + " Credential=" + c.AccessKey + "/" + scope + ", SignedHeaders=" + names + ", Signature=" +
		hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonical returns the names of the signed headers and the canonical request.
func (s *signed) canonical() (names, text string) {
	values := map[string]string{"host": s.host}
	for k, list := range s.header {
		if slices.Contains(unsigned, k) {
			continue
		}
		trimmed := make([]string, len(list))
		for i, v := range list {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		values[strings.ToLower(k)] = strings.Join(trimmed, ",")
	}
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	names = strings.Join(keys, ";")
	var b strings.Builder
	b.WriteString(s.method + "\n" + canonicalPath(s.path) + "\n" + canonicalQuery(s.query) + "\n")
	for _, k := range keys {
		b.WriteString(k + ":" + values[k] + "\n")
	}
	b.WriteString("\n" + names + "\n" + s.hash)
	return names, b.String()
}

// canonicalPath normalizes a path and escapes it again: services other than S3 sign the escaped form of the path that
// is sent.
func canonicalPath(p string) string {
	if p == "" {
		return "/"
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return escape(clean, true)
}

func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	values, _ := url.ParseQuery(raw) // a malformed pair is not sent either
	var pairs [][2]string
	for k, list := range values {
		for _, v := range list {
			pairs = append(pairs, [2]string{escape(k, false), escape(v, false)})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int {
		if c := strings.Compare(a[0], b[0]); c != 0 {
			return c
		}
		return strings.Compare(a[1], b[1])
	})
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = p[0] + "=" + p[1]
	}
	return strings.Join(texts, "&")
}

// escape escapes all bytes but the unreserved ones of RFC 3986.
func escape(s string, slash bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~',
			c == '/' && slash:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
