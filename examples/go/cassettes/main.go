// Cassettes shows how an agent is tested without network and keys: main_test.go replays what went to and came from the
// model and the tools. Run it with -record testdata/cassette to record that again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"

	"github.com/tenonhq/tenon/host"
)

func main() {
	record := flag.String("record", "", "`folder` of a cassette to record")
	flag.Parse()
	text, err := forecast(context.Background(), host.Config{Record: *record}, "London")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

// forecast asks for the weather in a city. A test adds the cassette to cfg.
func forecast(ctx context.Context, cfg host.Config, city string) (text string, err error) {
	cfg.Model = host.DemoModel // a built-in script
	cfg.Functions = []host.Function{host.NewFunction("get_weather", "The weather at a place", getWeather).ReadOnly()}
	h, err := host.Open(ctx, cfg)
	if err != nil {
		return "", err
	}
	// Close reports parts of a cassette that were not used.
	defer func() { err = errors.Join(err, h.Close()) }()
	answer, err := h.Ask(ctx, "How is the weather in "+city+"?")
	return answer.Text, err
}

type place struct {
	Location string `json:"location"`
}

func getWeather(context.Context, place) (string, error) { return "15°C, Cloudy", nil }
