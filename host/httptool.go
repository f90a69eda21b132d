package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow/runner"
)

// shownBody is the largest part of an error response that the tool result contains, in bytes.
const shownBody = 4 << 10

// httpTools is the toolset of the tools of kind http. The catalog reads the list of these tools from the configuration.
type httpTools struct {
	h      *Host
	client *outbound.Client
	tools  map[string]httpTool
	entry  string // path of the entry of all tools; "" if each tool has an entry
}

// httpTool is one request with its templates.
type httpTool struct {
	catalog.Request
	entry         string // path, such as tools.weather
	address, body *policy.Template
	headers       map[string]*policy.Template
}

func (h *Host) openHTTPTools(templates *policy.Templates, entries map[string]catalog.Tool) (*httpTools, error) {
	t := &httpTools{h: h, client: outbound.New(), tools: map[string]httpTool{}}
	for name, e := range entries {
		one := httpTool{Request: e.Request, entry: "tools." + name, headers: map[string]*policy.Template{}}
		var err error
		bad := func(key string, err error) error {
			return tenon.Errorf(tenon.CodeConfig, "tools.%s.request.%s: %w", name, key, err)
		}
		if one.address, err = templates.Compile(e.Request.URL, false); err != nil {
			return nil, bad("url", err)
		}
		if wrong := config.CheckFixed(one.address.Fixed()); wrong != "" {
			return nil, tenon.Errorf(tenon.CodeConfig, "tools.%s.request.url %s", name, wrong)
		}
		if one.body, err = templates.Compile(e.Request.Body, false); err != nil {
			return nil, bad("body", err)
		}
		for k, v := range e.Request.Headers {
			if one.headers[k], err = templates.Compile(v, true); err != nil {
				return nil, bad("headers."+k, err)
			}
		}
		t.tools[e.WithDefaults(name).RemoteName] = one
	}
	return t, nil
}

// Tools implements [tenon.Toolset].
func (*httpTools) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

// Toolset implements [runner.Requests].
func (t *httpTools) Toolset(entry string) tenon.Toolset {
	own := *t
	own.entry = entry
	return &own
}

// Address implements [runner.Requests].
func (t *httpTools) Address(tool string) string { return t.tools[tool].URL }

// Secrets implements [runner.Requests].
func (t *httpTools) Secrets() (list []runner.Secret) {
	for _, name := range slices.Sorted(maps.Keys(t.tools)) {
		headers := t.tools[name].headers
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			for _, secret := range headers[header].Secrets() {
				list = append(list, runner.Secret{Tool: name, Header: header, Name: secret})
			}
		}
	}
	return list
}

// Close implements [runner.Requests].
func (t *httpTools) Close() { t.client.Close() }

// Call implements [tenon.Toolset].
func (t *httpTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	tool, ok := t.tools[c.Tool]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s' of kind http in the configuration "+
			"any more", c.Tool)
	}
	r, err := t.request(ctx, &tool, c)
	if tenon.ErrorCode(err) == tenon.CodeInvalid {
		return tenon.ErrorResult("the request cannot be made: " + err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	resp, err := t.client.Do(ctx, r)
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "tool '%s': %w", c.Tool, err)
	}
	return answerOf(r.URL, resp), nil
}

// request fills in the templates of a request.
func (t *httpTools) request(ctx context.Context, tool *httpTool, c tenon.Call) (outbound.Request, error) {
	r := outbound.Request{Method: cmp.Or(tool.Method, http.MethodGet), Header: http.Header{},
		Private: tool.AllowPrivate, Public: !t.h.config.Policy.URLs.AllowsPrivate()}
	var err error
	if r.URL, err = tool.address.Render(c.Arguments, policy.EscapeURL, nil); err != nil {
		return r, err
	}
	if err := staysPut(r.URL); err != nil {
		return r, err
	}
	secret := func(name string) (string, error) {
		s, err := t.h.config.SecretFor(ctx, cmp.Or(t.entry, tool.entry), name)
		t.h.redactor.Add(s)
		return s.Reveal(), err
	}
	for _, k := range slices.Sorted(maps.Keys(tool.headers)) {
		v, err := tool.headers[k].Render(c.Arguments, policy.EscapeNone, secret)
		if err != nil {
			return r, err
		}
		if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return r, tenon.Errorf(tenon.CodeInvalid, "the header %s would hold control characters", k)
		}
		r.Header.Set(k, v)
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "tenon/"+cmp.Or(t.h.cfg.Version, "dev"))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && c.Key != "" &&
		r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", c.Key)
	}
	if tool.Body == "" {
		return r, nil
	}
	kind, how := bodyKind(r.Header.Get("Content-Type"), tool.Body)
	body, err := tool.body.Render(c.Arguments, how, nil)
	if err != nil {
		return r, err
	}
	if how == policy.EscapeJSON && !json.Valid([]byte(body)) {
		return r, tenon.Errorf(tenon.CodeInvalid, "the body is not JSON with these values: %s",
			tenon.Shorten(body, 200))
	}
	r.Header.Set("Content-Type", kind)
	r.Body = []byte(body)
	return r, nil
}

// bodyKind returns the media type of a body, and how values in it are escaped.
func bodyKind(written, body string) (string, policy.Escape) {
	media, _, _ := mime.ParseMediaType(written)
	first := strings.TrimSpace(body)
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return written, policy.EscapeJSON
	case media == "application/x-www-form-urlencoded":
		return written, policy.EscapeURL
	case written == "" && first != "" && (first[0] == '{' && !strings.HasPrefix(first, "{{") || first[0] == '[' ||
		strings.HasPrefix(first, `"`)):
		return "application/json", policy.EscapeJSON
	}
	return cmp.Or(written, "text/plain; charset=utf-8"), policy.EscapeNone
}

// staysPut refuses an address if a value would lead its path upwards.
func staysPut(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the address cannot be read with these values")
	}
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		if plain, err := url.PathUnescape(part); err != nil || plain == "." || plain == ".." {
			return tenon.Errorf(tenon.CodeInvalid, "the path of the address would hold '%s'", tenon.Visible(part))
		}
	}
	return nil
}

// answerOf makes a result from a response.
func answerOf(address string, r *outbound.Response) *tenon.Result {
	media, _, _ := mime.ParseMediaType(r.Type)
	isText := utf8.Valid(r.Body) && !bytes.ContainsRune(r.Body, 0)
	if r.Status >= 300 {
		text := "HTTP " + r.Text
		if isText && len(r.Body) > 0 {
			text += ": " + tenon.Truncate(string(r.Body), shownBody)
		}
		return tenon.ErrorResult(text)
	}
	out := &tenon.Result{}
	switch {
	case strings.HasPrefix(media, "image/") && !isText:
		out.Content = []tenon.Content{{Type: tenon.ContentImage, MimeType: media,
			Data: base64.StdEncoding.EncodeToString(r.Body)}}
	case strings.HasPrefix(media, "audio/"):
		out.Content = []tenon.Content{{Type: tenon.ContentAudio, MimeType: media,
			Data: base64.StdEncoding.EncodeToString(r.Body)}}
	case !isText:
		u, _ := url.Parse(address)
		u.RawQuery = ""
		out.Content = []tenon.Content{{Type: tenon.ContentResource, URI: u.String(),
			MimeType: cmp.Or(media, "application/octet-stream"), Data: base64.StdEncoding.EncodeToString(r.Body)}}
	case len(r.Body) == 0:
		out.Content = []tenon.Content{tenon.Text(fmt.Sprintf("HTTP %s, without a body", r.Text))}
	default:
		out.Content = []tenon.Content{tenon.Text(string(r.Body))}
		if (media == "application/json" || strings.HasSuffix(media, "+json")) &&
			bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("{")) && json.Valid(r.Body) {
			out.Structured = r.Body
		}
	}
	return out
}

var _ tenon.Toolset = (*httpTools)(nil)
