package referees

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/bedrock"
)

// The credentials and the model of all clients.
const (
	awsKey, awsSecret, awsToken = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/session+token=="
	awsRegion                   = "eu-central-1"
	awsModel                    = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
)

const smallPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// bedrockEvents are the events of the stub's answer, in the service's words.
var bedrockEvents = [][2]string{
	{"messageStart", `{"role":"assistant","p":"abc"}`},
	{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"It is "},"p":"abcdef"}`},
	{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"15 °C \"there\"."},"p":"a"}`},
	{"contentBlockStop", `{"contentBlockIndex":0}`},
	{"contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"name":"get_weather","toolUseId":"tooluse_2"}}}`},
	{"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"city\":"}}}`},
	{"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":" \"Paris\"}"}}}`},
	{"contentBlockStop", `{"contentBlockIndex":1}`},
	{"messageStop", `{"stopReason":"tool_use"}`},
	{"metadata", `{"metrics":{"latencyMs":12},"usage":{"inputTokens":50,"outputTokens":7,"totalTokens":57,"cacheReadInputTokens":40,"cacheWriteInputTokens":0}}`},
}

// awsStub plays Bedrock's runtime. The frames of its answers are written by the SDK's encoder.
type awsStub struct {
	t    *testing.T
	mu   sync.Mutex
	seen []*http.Request
	body [][]byte
}

func (s *awsStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.seen, s.body = append(s.seen, r), append(s.body, b)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	e := eventstream.NewEncoder()
	for _, event := range bedrockEvents {
		m := eventstream.Message{Payload: []byte(event[1])}
		m.Headers.Set(":event-type", eventstream.StringValue(event[0]))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		if err := e.Encode(w, m); err != nil {
			s.t.Error(err)
		}
	}
}

// heard is an answer as a client understood it.
type heard struct {
	Text, Call, Arguments, Stop string
	Input, Output, CacheRead    int
}

// TestBedrockClients: tenon, aws-sdk-go-v2 and botocore send the same request to one stub, with signatures that AWS's
// own signer makes too, and understand its answer alike.
func TestBedrockClients(t *testing.T) {
	stub := &awsStub{t: t}
	server := httptest.NewServer(stub)
	defer server.Close()
	mine := askTenon(t, server.URL)
	theirs := map[string]heard{"aws-sdk-go-v2": askSDK(t, server.URL)}
	names := []string{"tenon", "aws-sdk-go-v2"}
	if python := os.Getenv("TENON_BOTOCORE"); python != "" {
		theirs["botocore"] = askBotocore(t, python, server.URL)
		names = append(names, "botocore")
	} else {
		t.Log("botocore is not asked: TENON_BOTOCORE names no Python that has it; make referees makes one")
	}
	if len(stub.seen) != len(names) {
		t.Fatalf("%d requests arrived from %v", len(stub.seen), names)
	}
	for i, name := range names {
		t.Run("MD-10_signature_"+name, func(t *testing.T) { checkSignature(t, stub.seen[i], stub.body[i]) })
		if i == 0 {
			continue
		}
		t.Run("MD-10_body_"+name, func(t *testing.T) {
			if diff := cmp.Diff(decoded(t, stub.body[i]), decoded(t, stub.body[0])); diff != "" {
				t.Errorf("- %s, + tenon:\n%s", name, diff)
			}
			if got, want := stub.seen[0].URL.EscapedPath(), stub.seen[i].URL.EscapedPath(); unescaped(t, got) != unescaped(t, want) {
				t.Errorf("tenon asks %s, and %s asks %s", got, name, want)
			}
		})
		t.Run("MD-10_answer_"+name, func(t *testing.T) {
			if diff := cmp.Diff(theirs[name], mine); diff != "" {
				t.Errorf("- %s, + tenon:\n%s", name, diff)
			}
		})
	}
}

func decoded(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

func unescaped(t *testing.T, path string) string {
	t.Helper()
	s, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkSignature signs a request again with the SDK's signer, and compares the signatures.
func checkSignature(t *testing.T, r *http.Request, body []byte) {
	t.Helper()
	given := r.Header.Get("Authorization")
	_, rest, ok := strings.Cut(given, "SignedHeaders=")
	signed, _, ok2 := strings.Cut(rest, ",")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if !ok || !ok2 || err != nil {
		t.Fatalf("%q, %v", given, err)
	}
	again, err := http.NewRequestWithContext(t.Context(), r.Method, "http://"+r.Host+r.URL.EscapedPath(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(signed, ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	if !strings.Contains(signed, "content-length") {
		again.ContentLength = -1
	}
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: awsKey, SecretAccessKey: awsSecret, SessionToken: awsToken}
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, again, hex.EncodeToString(sum[:]), "bedrock", awsRegion, at); err != nil {
		t.Fatal(err)
	}
	squeeze := strings.NewReplacer(" ", "")
	if got := again.Header.Get("Authorization"); squeeze.Replace(got) != squeeze.Replace(given) {
		t.Errorf("the signer says\n%s, the client sent\n%s", got, given)
	}
}

// askTenon asks with tenon's adapter.
func askTenon(t *testing.T, address string) heard {
	t.Helper()
	env := map[string]string{"AWS_ACCESS_KEY_ID": awsKey, "AWS_SECRET_ACCESS_KEY": awsSecret, "AWS_SESSION_TOKEN": awsToken}
	temperature, off := 0.5, false
	m, err := bedrock.New(model.Config{Provider: "bedrock", Model: awsModel, BaseURL: address, Region: awsRegion, MaxTokens: 100,
		Temperature: &temperature, Stop: []string{"END"}, Quirks: model.QuirkConfig{Cache: &off}},
		model.Env{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	req := &tenon.Request{System: "Be brief.", ToolChoice: "any",
		Tools: []tenon.Tool{{Name: "get_weather", Description: "The weather", Input: json.RawMessage(weatherSchema)}},
		Messages: []*tenon.Message{{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "Where is <this> & \"that\"? ☃"},
			{Type: tenon.PartImage, MimeType: "image/png", Data: smallPNG}}},
			{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "I look."}, {Type: tenon.PartCall,
				Call: &tenon.ToolCall{ID: "tooluse_1", Name: "get_weather", Arguments: json.RawMessage(`{"city":"London"}`)}}}},
			{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "tooluse_1", Name: "get_weather",
				IsError: true, Content: []tenon.Content{tenon.Text("no such city")}}}}}}}
	var a heard
	for d, err := range m.Generate(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if r := d.Response; r != nil {
			call := r.Message.Calls()[0]
			a = heard{r.Message.Text(), call.Name, string(call.Arguments), r.RawStop, r.Usage.Input - r.Usage.CacheRead, r.Usage.Output, r.Usage.CacheRead}
		}
	}
	return a
}

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

// askSDK asks the same with aws-sdk-go-v2.
func askSDK(t *testing.T, address string) heard {
	t.Helper()
	c := bedrockruntime.New(bedrockruntime.Options{Region: awsRegion, BaseEndpoint: &address,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: awsKey, SecretAccessKey: awsSecret, SessionToken: awsToken}, nil
		})})
	picture, err := base64.StdEncoding.DecodeString(smallPNG)
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal([]byte(weatherSchema), &schema); err != nil {
		t.Fatal(err)
	}
	out, err := c.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(awsModel),
		System:          []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "Be brief."}},
		InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(100), Temperature: aws.Float32(0.5), StopSequences: []string{"END"}},
		ToolConfig: &types.ToolConfiguration{ToolChoice: &types.ToolChoiceMemberAny{}, Tools: []types.Tool{&types.ToolMemberToolSpec{
			Value: types.ToolSpecification{Name: aws.String("get_weather"), Description: aws.String("The weather"),
				InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema)}}}}},
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{
			&types.ContentBlockMemberText{Value: "Where is <this> & \"that\"? ☃"},
			&types.ContentBlockMemberImage{Value: types.ImageBlock{Format: types.ImageFormatPng, Source: &types.ImageSourceMemberBytes{Value: picture}}}}},
			{Role: types.ConversationRoleAssistant, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "I look."},
				&types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{ToolUseId: aws.String("tooluse_1"), Name: aws.String("get_weather"),
					Input: document.NewLazyDocument(map[string]any{"city": "London"})}}}},
			{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
				ToolUseId: aws.String("tooluse_1"), Status: types.ToolResultStatusError,
				Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: "no such city"}}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var a heard
	for e := range out.GetStream().Events() {
		switch e := e.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			if use, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
				a.Call = *use.Value.Name
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch d := e.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				a.Text += d.Value
			case *types.ContentBlockDeltaMemberToolUse:
				a.Arguments += *d.Value.Input
			}
		case *types.ConverseStreamOutputMemberMessageStop:
			a.Stop = string(e.Value.StopReason)
		case *types.ConverseStreamOutputMemberMetadata:
			u := e.Value.Usage
			a.Input, a.Output, a.CacheRead = int(*u.InputTokens), int(*u.OutputTokens), int(*u.CacheReadInputTokens)
		}
	}
	if err := out.GetStream().Err(); err != nil {
		t.Fatal(err)
	}
	return a
}

// askBotocore asks the same with botocore.
func askBotocore(t *testing.T, python, address string) heard {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, "bedrock.py", address, awsRegion, awsModel, smallPNG)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+awsKey, "AWS_SECRET_ACCESS_KEY="+awsSecret, "AWS_SESSION_TOKEN="+awsToken,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	var a heard
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("botocore: %w\n%s%s", err, b, stderr.String()))
	}
	return a
}
