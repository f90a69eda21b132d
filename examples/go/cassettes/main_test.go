package main

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/host"
)

// TestForecast replays the cassette. No model is asked and no tool is called.
func TestForecast(t *testing.T) {
	text, err := forecast(t.Context(), host.Config{Home: t.TempDir(), Replay: "testdata/cassette"}, "London")
	if err != nil {
		t.Fatal(err)
	}
	if want := "15°C"; !strings.Contains(text, want) {
		t.Errorf("the forecast is %q, want one with %q", text, want)
	}
}

// TestForecastElsewhere asks a question that the cassette does not have.
func TestForecastElsewhere(t *testing.T) {
	_, err := forecast(t.Context(), host.Config{Home: t.TempDir(), Replay: "testdata/cassette"}, "Paris")
	if err == nil || !strings.Contains(err.Error(), "no matching recording") {
		t.Errorf("error %v, want one that the recording is missing", err)
	}
}
