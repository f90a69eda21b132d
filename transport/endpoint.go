package transport

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// endpoint reads a URL and refuses what could never be dialed. The error of
// package url is left out because it may quote a password.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s is no http or https URL", quote(MaskURL(text)))
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, tenon.Errorf(tenon.CodeConfig, "%s has a port that is not in 1 to 65535", quote(MaskURL(text)))
		}
	}
	return u, nil
}

// reserved are the headers that belong to the connection.
var reserved = []string{"Connection", "Content-Length", "Host", "Mcp-Session-Id", "Transfer-Encoding"}

// checkHeader refuses a header of the user that cannot be sent (RFC 9110,
// section 5) or that is ours to send. No message shows a value, which may be a
// secret.
func checkHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	}) {
		return tenon.Errorf(tenon.CodeInvalid, "%s is no name of a header", quote(name))
	}
	if name := http.CanonicalHeaderKey(name); slices.Contains(reserved, name) {
		return tenon.Errorf(tenon.CodeInvalid, "header '%s' is set by the connection itself; remove it", name)
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c == '\r' || c == '\n':
			return tenon.Errorf(tenon.CodeInvalid, "the value of header '%s' holds a line break, which no header can; "+
				"if it comes from a file, remove the break at its end", name)
		case c < ' ' && c != '\t' || c == 0x7f:
			return tenon.Errorf(tenon.CodeInvalid, "the value of header '%s' holds a control character, which no header can", name)
		}
	}
	return nil
}

// quote puts text into single quotes, with what cannot be shown escaped.
func quote(text string) string {
	q := strconv.QuoteToGraphic(text)
	return "'" + q[1:len(q)-1] + "'"
}
