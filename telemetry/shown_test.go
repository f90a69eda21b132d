package telemetry

import "testing"

func TestShownAddress(t *testing.T) {
	for in, want := range map[string]string{
		"https://h/v1":                      "https://h/v1",
		"https://user:secret@h:4318/v1?a=b": "https://***@h:4318/v1?a=b",
		"https://token@h//x":                "https://***@h//x",
		"https://%zz":                       "an invalid address",
	} {
		if got := shown(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
