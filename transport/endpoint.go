package transport

import (
	"net/url"
	"strconv"

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

// quote puts text into single quotes, with what cannot be shown escaped.
func quote(text string) string {
	q := strconv.QuoteToGraphic(text)
	return "'" + q[1:len(q)-1] + "'"
}
