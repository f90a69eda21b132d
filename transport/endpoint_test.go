package transport

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestDialHTTPRefuses checks which configurations are refused before anything is dialed.
func TestDialHTTPRefuses(t *testing.T) {
	const ok = "http://127.0.0.1:1/mcp"
	one := func(name, value string) map[string]string { return map[string]string{name: value} }
	tests := []struct {
		name    string
		url     string
		headers map[string]string
		code    tenon.Code
		message string // substring of the error; "" for no error
	}{
		{"fine", ok, map[string]string{"Authorization": "Bearer x", "X_y.z": "tab\tünï"}, "", ""},
		{"no port", "http://h:/mcp", nil, "", ""},
		{"IPv6", "http://[::1]:80/mcp", nil, "", ""},
		{"port too large", "http://h:65536/mcp", nil, tenon.CodeConfig,
			"'http://h:65536/mcp' has a port outside 1 to 65535"},
		{"port 0", "http://h:0/mcp", nil, tenon.CodeConfig, "has a port"},
		{"huge port", "http://h:99999999999999999999/mcp", nil, tenon.CodeConfig, "has a port"},
		{"port is no number", "http://h:x/mcp", nil, tenon.CodeConfig, "is not a http or https URL"},
		{"no host", "http://:80/mcp", nil, tenon.CodeConfig, "is not a http or https URL"},
		{"no scheme", "h/mcp", nil, tenon.CodeConfig, "is not a http or https URL"},
		{"control character", "http://h/\n", nil, tenon.CodeConfig, `'http://h/\n' is not a http or https URL`},
		{"empty", "", nil, tenon.CodeConfig, "'' is not a http or https URL"},
		{"line break", ok, one("X-Key", "s3cret\n"), tenon.CodeInvalid, "header 'X-Key' contains a line break"},
		{"smuggled", ok, one("X-Key", "s3cret\r\nHost: x"), tenon.CodeInvalid, "header 'X-Key' contains a line break"},
		{"NUL", ok, one("X-Key", "s3cret\x00"), tenon.CodeInvalid, "header 'X-Key' contains a control character"},
		{"name with a break", ok, one("X\r\nKey", "s3cret"), tenon.CodeInvalid,
			`'X\r\nKey' is not a valid header name`},
		{"name with a colon", ok, one("X:", "s3cret"), tenon.CodeInvalid, "'X:' is not a valid header name"},
		{"name with a space", ok, one("X Y", "s3cret"), tenon.CodeInvalid, "'X Y' is not a valid header name"},
		{"no name", ok, one("", "s3cret"), tenon.CodeInvalid, "'' is not a valid header name"},
		{"Host", ok, one("host", "x"), tenon.CodeInvalid, "header 'Host' is set by the connection itself"},
		{"Content-Length", ok, one("CONTENT-LENGTH", "1"), tenon.CodeInvalid, "header 'Content-Length' is"},
		{"Mcp-Session-Id", ok, one("mcp-session-id", "x"), tenon.CodeInvalid, "header 'Mcp-Session-Id' is"},
		{"Transfer-Encoding", ok, one("Transfer-Encoding", "chunked"), tenon.CodeInvalid,
			"header 'Transfer-Encoding' is"},
		{"Connection", ok, one("Connection", "close"), tenon.CodeInvalid, "header 'Connection' is"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := DialHTTP(HTTPConfig{URL: tt.url, Headers: tt.headers})
			if h != nil {
				defer func() { _ = h.Close() }()
			}
			if tenon.ErrorCode(err) != tt.code {
				t.Fatalf("%s: %v", tenon.ErrorCode(err), err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.message) || strings.Contains(err.Error(), "s3cret")) {
				t.Error(err)
			}
		})
	}
}
