package referees

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// TestOpenAIClient sends requests to tenon serve with OpenAI's own SDK: for the list of models, for a whole answer, for
// a stream with usage, for a call that waits for an approval, and requests that are errors.
func TestOpenAIClient(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "tenon")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/tenon")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range map[string]string{
		"steps.yaml": "steps:\n  - text: I count.\n    usage: {input_tokens: 10, output_tokens: 3}\n    calls: [{name: counter, arguments: {}}]\n" +
			"  - text: Counted.\n    usage: {input_tokens: 20, output_tokens: 4}\n",
		"tenon.yaml": "version: 1\nservers:\n  t: {command: " + bin + ", args: [testserver, --stdio]}\nmodels:\n  m: {provider: script, path: steps.yaml}\nagents:\n  helper: {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url, token := serveTenon(t, bin, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey(token), option.WithMaxRetries(0))
	page, err := c.Models.List(ctx)
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != "helper" {
		t.Fatalf("models %+v: %v", page, err)
	}
	ask := func(text string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "helper", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage(text)}}
	}
	whole, err := c.Chat.Completions.New(ctx, ask("count"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(whole.Choices[0].Message.Content, `Answer "`)
	decision, _, ok2 := strings.Cut(rest, `"`)
	if !ok || !ok2 || !strings.HasPrefix(decision, "approve run_") || whole.Choices[0].FinishReason != "stop" || len(whole.Choices[0].Message.ToolCalls) > 0 {
		t.Fatalf("the answer is %q (%s)", whole.Choices[0].Message.Content, whole.Choices[0].FinishReason)
	}
	params := ask(decision)
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := c.Chat.Completions.NewStreaming(ctx, params)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Errorf("a chunk that does not belong to the others: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got := acc.Choices[0].Message.Content; got != "Counted." || acc.Usage.PromptTokens != 20 || acc.Usage.CompletionTokens != 4 || acc.Usage.TotalTokens != 24 {
		t.Errorf("the stream said %q, usage %+v", got, acc.Usage)
	}
	var refused *openai.Error
	if _, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "nobody", Messages: ask("x").Messages}); !errors.As(err, &refused) || refused.StatusCode != 404 || refused.Message == "" {
		t.Errorf("an unknown model: %v", err)
	}
	wrong := openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey("wrong"), option.WithMaxRetries(0))
	if _, err := wrong.Models.List(ctx); !errors.As(err, &refused) || refused.StatusCode != 401 || refused.Type != "authentication_error" {
		t.Errorf("a wrong key: %v", err)
	}
}

// serveTenon starts tenon serve in a folder and returns its address and its token.
func serveTenon(t *testing.T, bin, dir string) (url, token string) {
	t.Helper()
	serve := exec.Command(bin, "serve", "-c", "tenon.yaml", "--listen", "127.0.0.1:0", "--log-level", "info")
	serve.Dir = dir
	log, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGINT)
		_ = serve.Wait()
	})
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "url="); ok {
			url, _, _ = strings.Cut(rest, " ")
			break
		}
	}
	go func() { // drains the output, so that tenon never waits for its reader
		for lines := bufio.NewScanner(log); lines.Scan(); {
		}
	}()
	b, err := os.ReadFile(filepath.Join(dir, ".tenon", "serve.token"))
	if err != nil || url == "" {
		t.Fatalf("url %q: %v", url, err)
	}
	return url, strings.TrimSpace(string(b))
}
