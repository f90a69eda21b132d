package tui

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// backgrounds are backgrounds of terminals and of frequent colour schemes.
var backgrounds = map[string]uint32{"black": 0x000000, "xterm.js": 0x1e1e1e, "Solarized dark": 0x002b36, "Dracula": 0x282a36,
	"Gruvbox dark": 0x282828, "Nord": 0x2e3440, "One Dark": 0x282c34, "Ubuntu": 0x300a24, "Tango dark": 0x2e3436,
	"white": 0xffffff, "Solarized light": 0xfdf6e3, "Gruvbox light": 0xfbf1c7, "Catppuccin Latte": 0xeff1f5, "One Light": 0xfafafa,
	"GNOME light": 0xffffdd, "Nord light": 0xe5e9f0}

func rgb(x uint32) color.Color { return color.RGBA{uint8(x >> 16), uint8(x >> 8), uint8(x), 0xff} }

// TestUX4_Contrast computes the contrast of each colour of the program with dark and light backgrounds (WCAG 2.2, 1.4.3).
func TestUX4_Contrast(t *testing.T) {
	white, black := tone{"", 0xffffff}, tone{"", 0}
	if c := contrast(white.luminance(), black.luminance()); c < 20.99 || c > 21.01 {
		t.Fatalf("the contrast of black and white is %.2f", c)
	}
	if c := contrast(tone{"", 0x777777}.luminance(), white.luminance()); c < 4.47 || c > 4.49 { // an example of WCAG
		t.Fatalf("the contrast of #777777 and white is %.3f", c)
	}
	rgbOf := map[string]uint32{}
	for _, tones := range []map[string]tone{onDark, onLight} {
		for p, x := range tones {
			rgbOf["38;5;"+x.index] = x.rgb
			if got := xterm(x.index); got != x.rgb {
				t.Errorf("colour %s for parameter %s is %06x, not %06x", x.index, p, got, x.rgb)
			}
		}
		if !slices.Equal(slices.Sorted(maps.Keys(tones)), slices.Sorted(maps.Keys(onDark))) {
			t.Error("a palette lacks a colour")
		}
	}
	for name, at := range backgrounds {
		for p, to := range newLook(ThemeColor, rgb(at)).swap {
			if to == "" {
				t.Errorf("%s: parameter %s has no colour", name, p)
				continue
			}
			if c := contrast(tone{"", at}.luminance(), tone{"", rgbOf[to]}.luminance()); c < readable {
				t.Errorf("%s: parameter %s has the contrast %.2f", name, p, c)
			}
		}
	}
	for grey := range uint32(256) { // on every grey, a colour is readable or it is not used
		at := grey<<16 | grey<<8 | grey
		for p, to := range newLook(ThemeColor, rgb(at)).swap {
			if c := contrast(tone{"", at}.luminance(), tone{"", rgbOf[to]}.luminance()); to != "" && c < readable {
				t.Errorf("#%06x: parameter %s has the contrast %.2f", at, p, c)
			}
		}
	}
}

// xterm returns the value of a colour from 16 to 255.
func xterm(index string) uint32 {
	var n uint32
	if _, err := fmt.Sscan(index, &n); err != nil {
		return 0
	}
	if n >= 232 {
		grey := 8 + 10*(n-232)
		return grey<<16 | grey<<8 | grey
	}
	level := func(i uint32) uint32 {
		if i == 0 {
			return 0
		}
		return 55 + 40*i
	}
	n -= 16
	return level(n/36)<<16 | level(n/6%6)<<8 | level(n%6)
}

// TestUX4_StylesHaveColours checks that both palettes have every colour that the program and its Markdown use.
func TestUX4_StylesHaveColours(t *testing.T) {
	b := newBench(100, 400)
	for _, s := range screens {
		s.do(b)
		b.unfolded = !b.unfolded
	}
	content := b.View().Content
	used := map[string]bool{}
	for _, part := range strings.Split(content, "\x1b[")[1:] {
		if args, _, ok := strings.Cut(part, "m"); ok && len(args) < 20 {
			for p := range strings.SplitSeq(args, ";") {
				used[p] = true
			}
		}
	}
	for p := range used {
		if _, ok := onDark[p]; !ok && (p == "2" || len(p) > 1) {
			t.Errorf("SGR parameter %s has no colour for known backgrounds", p)
		}
	}
	for _, p := range []string{"2", "31", "32", "33", "36"} {
		if !used[p] {
			t.Errorf("no screen uses %s: is the test still right?", p)
		}
	}
}

// TestUX4_Background checks which colours are drawn before and after the terminal reports its background.
func TestUX4_Background(t *testing.T) {
	draw := func(b *bench) string {
		b.send(Said{Text: "# A heading\n\nsome `code`, and\n\n> a quote\n\nthe end"})
		b.send(Delta{Text: "# More\n\nof *it*"})
		b.send(Call{Key: "1", Name: "a.b", State: CallFailed, Note: "error: no"})
		return b.View().Content
	}
	for name, tt := range map[string]struct {
		profile, theme string
		answer         tea.Msg
		has, lacks     []string
	}{
		"no answer":          {"ANSI256", "", nil, []string{"\x1b[2m", "\x1b[1;36m", "\x1b[31m"}, []string{"38;5"}},
		"light":              {"ANSI256", "", tea.BackgroundColorMsg{Color: color.White}, []string{"\x1b[38;5;240m", "\x1b[1;38;5;24m", "\x1b[38;5;124m"}, []string{"\x1b[2m", ";36m", "[31m"}},
		"dark":               {"TrueColor", "", tea.BackgroundColorMsg{Color: color.Black}, []string{"\x1b[38;5;247m", "\x1b[1;38;5;80m", "\x1b[38;5;210m"}, []string{"\x1b[2m", ";36m", "[31m"}},
		"light, contrast":    {"ANSI256", ThemeContrast, tea.BackgroundColorMsg{Color: color.White}, []string{"\x1b[1;38;5;24m", "\x1b[38;5;124m"}, []string{"\x1b[2m", "38;5;240"}},
		"light, plain":       {"ANSI256", ThemePlain, tea.BackgroundColorMsg{Color: color.White}, []string{"\x1b[2m", "\x1b[1m"}, []string{"38;5", "36m", "31m"}},
		"grey":               {"ANSI256", "", tea.BackgroundColorMsg{Color: color.Gray{0x77}}, []string{"\x1b[1m"}, []string{"\x1b[2m", "36m", "31m", "38;5"}},
		"16 colours":         {"ANSI", "", tea.BackgroundColorMsg{Color: color.White}, []string{"\x1b[2m", "\x1b[1;36m"}, []string{"38;5"}},
		"NO_COLOR":           {"Ascii", "", tea.BackgroundColorMsg{Color: color.White}, []string{"\x1b[2m"}, []string{"38;5"}},
		"a malformed colour": {"ANSI256", "", tea.BackgroundColorMsg{}, []string{"\x1b[2m"}, []string{"38;5"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(80, 40)
			b.send(Theme{tt.theme})
			asked := b.profile(tt.profile) != nil
			if want := tt.profile == "ANSI256" || tt.profile == "TrueColor"; asked != want {
				t.Errorf("asked for the background: %v", asked)
			}
			draw(b)
			if tt.answer != nil {
				b.send(tt.answer)
			}
			got := draw(b)
			for _, text := range tt.has {
				if !strings.Contains(got, text) {
					t.Errorf("%q is missing:\n%q", text, got)
				}
			}
			for _, text := range tt.lacks {
				if strings.Contains(got, text) {
					t.Errorf("%q is drawn:\n%q", text, got)
				}
			}
		})
	}
	b := newBench(80, 40)
	b.profile("ANSI256")
	if b.profile("TrueColor") != nil {
		t.Error("the background is asked for twice")
	}
	if _, cmd := b.Update(tea.FocusMsg{}); cmd != nil {
		t.Error("a terminal that does not answer is asked again")
	}
	b.send(tea.BackgroundColorMsg{Color: color.Black})
	if _, cmd := b.Update(tea.FocusMsg{}); cmd == nil {
		t.Error("the background is not asked for when the person comes back")
	}
	draw(b)
	b.send(tea.BackgroundColorMsg{Color: color.White}) // the scheme changed
	if got := draw(b); strings.Contains(got, "38;5;247") || !strings.Contains(got, "38;5;240") {
		t.Errorf("colours of the earlier background stay: %q", got)
	}
}
