package tenon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	const key = "sk-very-secret"
	type holder struct {
		Key    Secret `json:"key"`
		hidden Secret
	}
	h := holder{NewSecret(key), NewSecret(key)}
	js, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", h.Key, "holder", h)
	prints := map[string]string{
		"%v": fmt.Sprintf("%v", h), "%+v": fmt.Sprintf("%+v", h), "%#v": fmt.Sprintf("%#v", h),
		"%s": fmt.Sprintf("%s", h.Key), "%q": fmt.Sprintf("%q", h.Key), "%x": fmt.Sprintf("%x", h.Key),
		"%d": fmt.Sprintf("%d", h.Key), "pointer": fmt.Sprintf("%+v", &h), "json": string(js), "slog": log.String(),
	}
	hexed := fmt.Sprintf("%x", key)
	for name, got := range prints {
		if strings.Contains(got, key) || strings.Contains(got, hexed) {
			t.Errorf("%s shows the secret: %s", name, got)
		}
	}
	if string(js) != `{"key":"***"}` {
		t.Errorf("JSON is %s", js)
	}
	if h.Key.Reveal() != key || !h.Key.Equal(h.hidden) {
		t.Error("the value is lost")
	}
}

func TestSecretDecodes(t *testing.T) {
	var s Secret
	if err := json.Unmarshal([]byte(`"abc"`), &s); err != nil || s.Reveal() != "abc" {
		t.Fatalf("got %q, %v", s.Reveal(), err)
	}
	if err := json.Unmarshal([]byte(`""`), &s); err != nil || !s.IsZero() || s.String() != "" {
		t.Fatalf("an empty text is no secret: %v", err)
	}
}
