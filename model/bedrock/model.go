package bedrock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/awsauth"
	"github.com/tenonhq/tenon/model"
)

const wire = model.WireBedrock

// service is the name of the service in signatures.
const service = "bedrock"

// Model is a model of Amazon Bedrock.
type Model struct {
	client *model.Client
	cfg    model.Config // with its defaults
	quirks model.Quirks
	chain  *awsauth.Chain
	tools  model.ToolCache
	form   model.Form // with tool blocks
	flat   model.Form // with texts instead of tool blocks
}

// New returns the model for a config whose provider uses this wire. Errors have code config.
func New(cfg model.Config, env model.Env) (*Model, error) {
	c, err := model.NewClient(cfg, wire, env)
	if err != nil {
		return nil, err
	}
	m := newModel(c.Config())
	m.client, m.form.Maker, m.flat.Maker = c, c.Maker(), c.Maker()
	m.chain = awsauth.New(awsauth.Config{Profile: m.cfg.Profile, Region: m.region(), LookupEnv: env.LookupEnv,
		Transport: env.Credentials})
	return m, nil
}

func newModel(cfg model.Config) *Model {
	m := &Model{cfg: cfg, quirks: cfg.ResolvedQuirks()}
	key := wire
	for _, on := range []bool{m.quirks.Images, m.quirks.Documents, m.quirks.Video} {
		key += map[bool]string{true: " yes", false: " no"}[on]
	}
	m.form = model.Form{Key: key, Encode: func(msg *tenon.Message) ([]byte, error) { return m.encode(msg, false), nil }}
	m.flat = model.Form{Key: key + " flat", Encode: func(msg *tenon.Message) ([]byte, error) {
		return m.encode(msg, true), nil
	}}
	return m
}

// Name returns "bedrock/" and the model's name.
func (m *Model) Name() string { return m.client.Name() }

// region returns the configured region, or the region of an ARN, or "".
func (m *Model) region() string {
	if parts := strings.SplitN(m.cfg.Model, ":", 5); m.cfg.Region == "" && len(parts) == 5 && parts[0] == "arn" {
		return parts[3]
	}
	return m.cfg.Region
}

// Generate sends the request and yields the answer; see [tenon.Model].
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	body, err := m.body(req)
	if err != nil {
		return fails(err)
	}
	region, err := m.chain.Region()
	if err != nil {
		return fails(tenon.Errorf(tenon.CodeConfig, "%s: %w; set models.NAME.region", m.Name(), err))
	}
	x := m.exchange(region)
	x.Path, x.Body, x.Parse, x.Whole = "/model/"+escape(m.cfg.Model)+"/converse", body, m.parse, whole
	if m.quirks.Stream {
		x.Path += "-stream"
		x.Frames = Frames
		x.Header.Set("Accept", "application/vnd.amazon.eventstream")
	}
	if m.cfg.BaseURL == ownBase() {
		x.Base = "https://" + awsauth.Host("bedrock-runtime", region)
	}
	return m.client.Generate(ctx, x)
}

// exchange returns a request with the credentials of the model.
func (m *Model) exchange(region string) model.Exchange {
	x := model.Exchange{Header: http.Header{"Accept": {"application/json"}}}
	if !m.cfg.APIKey.IsZero() {
		x.Key = func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
		return x
	}
	x.Authorize = func(r *http.Request, body *model.Body) error {
		keys, err := m.chain.Credentials(r.Context())
		if err != nil {
			return err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, body.Reader()); err != nil {
			return err
		}
		awsauth.Sign(r, hex.EncodeToString(sum.Sum(nil)), keys, region, service, time.Now())
		return nil
	}
	x.Renew = func(refusal *model.Failure) bool {
		for _, reason := range []string{"Expired", "UnrecognizedClient", "InvalidClientToken"} {
			if strings.Contains(refusal.Type, reason) {
				m.chain.Forget()
				return true
			}
		}
		return false
	}
	return x
}

// List returns the foundation models and the inference profiles of the region. It needs AWS credentials or a key of
// Bedrock. Errors have code config, or are errors of models.
func List(ctx context.Context, cfg model.Config, env model.Env) ([]model.Listed, error) {
	cfg.Model = cmp.Or(cfg.Model, "none")
	m, err := New(cfg, env)
	if err != nil {
		return nil, err
	}
	region, err := m.chain.Region()
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "bedrock: %w; set models.NAME.region", err)
	}
	x := m.exchange(region)
	x.Base = m.cfg.BaseURL
	if x.Base == ownBase() {
		x.Base = "https://" + awsauth.Host("bedrock", region)
	}
	var models struct {
		Summaries []struct {
			ID    string `json:"modelId"`
			Name  string `json:"modelName"`
			Owner string `json:"providerName"`
		} `json:"modelSummaries"`
	}
	x.Path = "/foundation-models"
	if err := m.client.Get(ctx, x, &models); err != nil {
		return nil, err
	}
	var list []model.Listed
	for _, s := range models.Summaries {
		list = append(list, model.Listed{ID: s.ID, Title: s.Name, Owner: s.Owner})
	}
	var profiles struct {
		Summaries []struct {
			ID   string `json:"inferenceProfileId"`
			Name string `json:"inferenceProfileName"`
		} `json:"inferenceProfileSummaries"`
	}
	x.Path = "/inference-profiles?maxResults=1000"
	if err := m.client.Get(ctx, x, &profiles); err != nil {
		return nil, err
	}
	for _, s := range profiles.Summaries {
		list = append(list, model.Listed{ID: s.ID, Title: s.Name})
	}
	slices.SortFunc(list, func(a, b model.Listed) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

func fails(err error) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
}

// ownBase returns the address of Bedrock in the table of providers.
func ownBase() string {
	p, _ := model.Lookup("bedrock")
	return p.BaseURL
}

// escape escapes the id of a model as one segment of a path, as AWS's own clients do.
func escape(id string) string { return strings.ReplaceAll(url.PathEscape(id), ":", "%3A") }

// parse reads an answer. For models of OpenAI, the count inputTokens includes the cached tokens. For all other models
// it does not.
func (m *Model) parse(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	r, err := Parse(next, emit)
	if err == nil && r.Usage != nil && strings.Contains(m.cfg.Model, "openai.") {
		if cached := r.Usage.CacheRead + r.Usage.CacheWrite; r.Usage.Input >= 2*cached {
			r.Usage.Input -= cached
		}
	}
	return r, err
}

var _ tenon.Model = (*Model)(nil)
