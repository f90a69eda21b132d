package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// Table rows of tenon's own kinds of tools: requests, prompts and agents. They are checked like entries of the
// configuration. A table is untrusted data, so there are further limits: such a tool gets no secret and no
// environment variable, and each of its calls needs an approval.

// RowTool converts a row to an entry of tools. The row's kind is http, prompt or agent. Errors: invalid (a mistake in
// the row), denied (a secret), not_found (an unknown agent or model).
func (c *Config) RowTool(t *table.Tool) (catalog.Tool, error) {
	schema, err := t.Schema()
	if err != nil {
		return catalog.Tool{}, err
	}
	address, err := t.Address()
	if err != nil {
		return catalog.Tool{}, err
	}
	if address.Agent != "" {
		if _, ok := c.Agents[address.Agent]; !ok {
			return catalog.Tool{}, tenon.Errorf(tenon.CodeNotFound,
				"tool '%s' calls agent '%s', which the configuration does not have; agents: %s",
				tenon.Visible(t.Name), tenon.Visible(address.Agent),
				cmp.Or(strings.Join(slices.Sorted(maps.Keys(c.Agents)), ", "), "none"))
		}
		return catalog.Tool{Kind: tenon.KindAgent, Agent: address.Agent, Description: t.Description}, nil
	}
	if p := address.Prompt; p != nil {
		if _, ok := c.Models[p.Model]; p.Model != "" && !ok {
			return catalog.Tool{}, tenon.Errorf(tenon.CodeNotFound,
				"tool '%s' asks model '%s', which the configuration does not have under models",
				tenon.Visible(t.Name), tenon.Visible(p.Model))
		}
	} else if err := noRowSecrets(t, address.Request); err != nil {
		return catalog.Tool{}, err
	}
	entry := RowEntry(t, address, schema)
	delete(entry, "model") // it exists in this configuration
	const key = "tool"     // the row's name is made valid later
	rules := map[string]any{"urls": map[string]any{"allow_private": c.Policy.URLs.AllowsPrivate(),
		"require_https": cmp.Or(c.Policy.URLs.RequireHTTPS, "warn")},
		"literal_secrets": cmp.Or(c.Policy.LiteralSecrets, "warn")}
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any{"version": 1, "policy": rules,
		"tools": map[string]any{key: entry}}); err != nil {
		return catalog.Tool{}, tenon.Errorf(tenon.CodeInvalid, "tool '%s': %w", tenon.Visible(t.Name), err)
	}
	checked, err := Parse("server_uri", doc.Bytes(),
		Options{LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		return catalog.Tool{}, tenon.Errorf(tenon.CodeInvalid, "tool '%s' of kind %s: %s", tenon.Visible(t.Name),
			t.Kind, rowMistake(err))
	}
	out := checked.Tools[key]
	if address.Prompt != nil {
		out.Model = address.Prompt.Model
	}
	sum := sha256.Sum256([]byte(t.Server + "\x00" + string(schema)))
	// A permanent approval of another tool of this name must not apply to this one.
	out.RemoteName = t.Name + "@" + hex.EncodeToString(sum[:6])
	out.Annotations = unknownEffects()
	return out, nil
}

// RowEntry returns the entry of tools for a row, with the keys of the configuration. The row's kind is http, prompt
// or agent. Dollar signs are escaped, because a table takes nothing from the environment.
func RowEntry(t *table.Tool, address table.Address, schema json.RawMessage) map[string]any {
	entry := map[string]any{"description": t.Description}
	switch r := address.Request; {
	case address.Agent != "":
		entry["kind"], entry["agent"] = tenon.KindAgent, address.Agent
		return entry
	case r != nil:
		request := map[string]any{"method": cmp.Or(r.Method, http.MethodGet), "url": Literal(r.URL)}
		if len(r.Headers) > 0 {
			headers := map[string]string{}
			for name, value := range r.Headers {
				headers[name] = Literal(value)
			}
			request["headers"] = headers
		}
		if r.Body != "" {
			request["body"] = r.Body
		}
		entry["kind"], entry["request"] = tenon.KindHTTP, request
	default:
		entry["kind"], entry["template"] = tenon.KindPrompt, address.Prompt.Template
		if address.Prompt.Model != "" {
			entry["model"] = address.Prompt.Model
		}
	}
	entry["schema"] = schema
	return entry
}

// unknownEffects returns the annotations of a tool that may do anything.
func unknownEffects() catalog.Annotations {
	yes, no := true, false
	return catalog.Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &yes}
}

// rowMistake returns the first mistake of a row, without the place in the internal file.
func rowMistake(err error) string {
	var list Errors
	if !errors.As(err, &list) || len(list) == 0 {
		return err.Error()
	}
	if at := strings.TrimPrefix(strings.TrimPrefix(list[0].Path, "tools.tool"), "."); at != "" {
		return at + ": " + list[0].Message
	}
	return list[0].Message
}

// noRowSecrets refuses a request that contains a secret, because the row could send the secret anywhere.
func noRowSecrets(t *table.Tool, r *table.Request) error {
	header, secret, err := headerSecret(r.Headers)
	if err != nil || secret == "" {
		return err
	}
	return tenon.Errorf(tenon.CodeDenied, "tool '%s' came with a table, and its header %s wants the secret "+
		"'%s'; look at it, and make it a tool of the configuration",
		tenon.Visible(t.Name), tenon.Visible(header), tenon.Visible(secret))
}

// headerSecret returns the first header of a request that contains a secret, and the secret's name. Both are empty if
// there is none. tenon calls no request of a table's row that contains a secret.
func headerSecret(headers map[string]string) (header, secret string, err error) {
	templates, err := policy.NewTemplates()
	if err != nil {
		return "", "", err
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		text, err := templates.Compile(headers[name], true)
		if err != nil {
			continue // the checks of the configuration report the mistake
		}
		if secrets := text.Secrets(); len(secrets) > 0 {
			return name, secrets[0], nil
		}
	}
	return "", "", nil
}

// RowFlaw returns why no configuration can use a row of kind http or prompt, or "". A model that only some
// configurations have is no flaw.
func RowFlaw(t *table.Tool) string {
	if t.Kind != table.HTTP && t.Kind != table.Prompt {
		return ""
	}
	_, err := (&Config{}).RowTool(t)
	if err == nil || tenon.ErrorCode(err) == tenon.CodeNotFound {
		return ""
	}
	return err.Error()
}

// TableWorkflow is a workflow from a tool table. It is not trusted: descriptions and annotations in its file are
// ignored.
type TableWorkflow struct {
	Workflow *workflow.Workflow
	Pack     *workflow.Pack
	// Description is the description in the table's row. It replaces the description in the file.
	Description string

	raw *io.SectionReader // the pack in the table; nil if it cannot be read
}

// RowWorkflow reads the packed workflow of a row. Errors: not_found, invalid (also for a
// workflow of another program), store, [Errors].
func RowWorkflow(r *table.Reader, t *table.Tool) (w TableWorkflow, err error) {
	w.Description = t.Description
	if w.raw, err = r.Files().Workflow(t); err == nil {
		if table.IsKNIME(w.raw, w.raw.Size()) {
			return w, tenon.Errorf(tenon.CodeInvalid, "this tool holds a KNIME workflow; tenon cannot run it")
		}
		w.Workflow, w.Pack, err = OpenWorkflow(t.Name, w.raw, w.raw.Size())
	}
	if err != nil {
		return w, tenon.Errorf(tenon.ErrorCode(err), "%s%w", workflow.MessageFailed, err)
	}
	return w, nil
}
