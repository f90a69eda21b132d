package servers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// veilOf returns a redactor for the credentials of a caller. It is only used for the caller's own connection, because
// a caller must not choose words that are masked for others.
func veilOf(o Overlay) *tenon.Redactor {
	r := new(tenon.Redactor)
	r.Add(o.Auth.Secret)
	r.Add(tenon.NewSecret(secondFactor(o.Auth.Secret.Reveal())))
	if _, password, ok := strings.Cut(login(o.Auth.Secret.Reveal()), ":"); ok {
		r.Add(tenon.NewSecret(password))
	}
	for _, m := range []map[string]string{o.Headers, o.Env} {
		for _, v := range m {
			if len(v) >= leastMasked {
				r.Add(tenon.NewSecret(v))
			}
			for _, scheme := range []string{"Bearer ", "Basic ", "Token "} {
				if token, ok := strings.CutPrefix(v, scheme); ok {
					r.Add(tenon.NewSecret(token))
				}
			}
		}
	}
	return r
}

// callVeiled is Call on a caller's own connection: it masks the caller's credentials in progress and in the result.
func (s *Server) callVeiled(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	if tell := c.Progress; tell != nil {
		c.Progress = func(p tenon.Progress) {
			p.Message = s.veil.Text(p.Message)
			tell(p)
		}
	}
	if c.Ask != nil {
		c.Ask = s.veiledAsk(c.Ask)
	}
	r, err := s.Call(ctx, c)
	if err != nil {
		return nil, s.veiledError(err)
	}
	return s.veiledResult(r), nil
}

// veiledAsk masks the caller's credentials in the questions that ask passes on.
func (s *Server) veiledAsk(ask mcp.AskFunc) mcp.AskFunc {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		clean := s.veil.Bytes(params)
		if len(params) > 0 && !json.Valid(clean) {
			return nil, tenon.Errorf(tenon.CodeProtocol,
				"what the server asks holds a credential of the caller where it cannot be masked")
		}
		return ask(ctx, method, clean)
	}
}

// veiledCaller returns a context whose client is asked the questions of the server without the caller's credentials.
func (s *Server) veiledCaller(ctx context.Context) context.Context {
	c := mcp.CallerOf(ctx)
	if c == nil || c.Ask == nil {
		return ctx
	}
	own := *c
	own.Ask = s.veiledAsk(c.Ask)
	return mcp.WithCaller(ctx, &own)
}

func (s *Server) veiledResult(r *tenon.Result) *tenon.Result {
	withheld := func() *tenon.Result {
		return tenon.ErrorResult(
			"the result is withheld: it holds a credential of the caller where it cannot be masked")
	}
	if in := r.Input; in != nil && (s.veil.Text(in.State) != in.State ||
		string(s.veil.Bytes(in.Requests)) != string(in.Requests)) {
		return withheld() // the state must be sent back unchanged, and is stored until then
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return withheld()
	}
	clean := s.veil.Bytes(raw)
	if string(clean) == string(raw) {
		return r
	}
	out := new(tenon.Result)
	if !json.Valid(clean) || json.Unmarshal(clean, out) != nil {
		return withheld()
	}
	out.Input = r.Input
	return out
}

// veiledJSON masks the caller's credentials in v, which came over the caller's connection. what names v in errors.
func veiledJSON[T any](s *Server, v T, what string) (T, error) {
	var out T
	raw, err := json.Marshal(v)
	if err != nil {
		return out, tenon.Errorf(tenon.CodeInternal, "%s cannot be written as JSON: %w", what, err)
	}
	clean := s.veil.Bytes(raw)
	if string(clean) == string(raw) {
		return v, nil
	}
	if !json.Valid(clean) || json.Unmarshal(clean, &out) != nil {
		return out, tenon.Errorf(tenon.CodeProtocol,
			"%s is withheld: it holds a credential of the caller where it cannot be masked", what)
	}
	return out, nil
}

// veiledError returns err with the caller's credentials masked in its message and data.
func (s *Server) veiledError(err error) error {
	if err == nil {
		return nil
	}
	if in := (*mcp.InputError)(nil); errors.As(err, &in) && string(s.veil.Bytes(in.Raw)) != string(in.Raw) {
		return tenon.Errorf(tenon.CodeProtocol,
			"what the server asks is withheld: it holds a credential of the caller where it cannot be masked")
	}
	text := err.Error()
	clean := s.veil.Text(text)
	var data json.RawMessage
	var e *tenon.Error
	if errors.As(err, &e) {
		data = s.veil.Bytes(e.Data)
	}
	if clean == text && (e == nil || string(data) == string(e.Data)) {
		return err
	}
	if !json.Valid(data) {
		data = nil
	}
	return &tenon.Error{Code: tenon.ErrorCode(err), Message: clean, Data: data}
}

// note adds a line to the server's log: output of the server or an event of its connection. Secrets are masked.
func (s *Server) note(kind, text string) {
	s.journal.add(kind, s.masked(text))
}
