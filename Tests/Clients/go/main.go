// The client in Go, driven like worker.py.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"coffer"
)

type call struct {
	settings *coffer.Settings
	words    []any
}

func (c call) text(index int) string { return c.words[index].(string) }
func (c call) number(index int) int  { return int(c.words[index].(float64)) }

// value is an argument as the client has it: integers as int64.
func value(of any) any {
	if number, ok := of.(float64); ok && number == float64(int64(number)) {
		return int64(number)
	}
	return of
}

// alike compares values as JSON, where 5 and 5.0 are one.
func alike(one, other any) bool {
	var trees [2]any
	for index, each := range []any{one, other} {
		text, err := json.Marshal(each)
		if err != nil || json.Unmarshal(text, &trees[index]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(trees[0], trees[1])
}

var (
	lock sync.Mutex
	seen = []any{}
)

func note(item coffer.Item) {
	lock.Lock()
	defer lock.Unlock()
	value, _ := item.Value()
	seen = append(seen, []any{item.Key, value})
}

// wait is until an observer has been called, and the value is this one.
func (c call) wait() (any, error) {
	wake := make(chan struct{}, 1)
	end, err := c.settings.OnChange(c.text(1), c.text(2), func(coffer.Item) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	defer end()
	if err != nil {
		return nil, err
	}
	late := time.After(time.Minute)
	for {
		if value, err := c.settings.Item(c.text(1), c.text(2)).Value(); alike(value, c.words[3]) && (err == nil || c.words[3] == nil) {
			return true, nil
		}
		select {
		case <-wake:
		case <-late:
			return false, nil
		}
	}
}

// write sets keys with numbers, and prints each number once it is acknowledged; reads meanwhile.
func (c call) write() (any, error) {
	for number := c.number(3); number < c.number(3)+c.number(4); number++ {
		if _, err := c.settings.Set(c.text(1), fmt.Sprint(c.text(2), number), number, coffer.SetOptions{}); err == nil {
			show(map[string]any{"acknowledged": number})
		} else if !errors.Is(err, coffer.ErrUnavailable) {
			return nil, err
		}
		if large, err := coffer.Get[string](c.settings, c.text(1), "large"); err != nil || len(large) != c.number(5) {
			panic("a value is gone")
		}
	}
	return nil, nil
}

// lengthen appends to a secret that is in memory.
func (c call) lengthen() (any, error) {
	_, err := c.settings.Update(c.text(1), c.text(2), func(present any) (any, error) {
		return coffer.NewSecret(present.(coffer.Secret).Text() + "!"), nil
	}, coffer.SetOptions{})
	if err != nil {
		return nil, err
	}
	secret, err := coffer.Get[coffer.Secret](c.settings, c.text(1), c.text(2))
	item, shown := c.settings.Item(c.text(1), c.text(2)), secret.Text()
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %o %b %c %U %t %e") {
		for _, value := range []any{secret, item, &item, []coffer.Item{item}, map[string]any{"a": secret}, struct{ own coffer.Secret }{secret}} {
			shown += " " + fmt.Sprintf(verb, value)
		}
	}
	return shown, err
}

// spoil changes a list in place, and then gives up.
func (c call) spoil() (any, error) {
	return c.settings.Update(c.text(1), c.text(2), func(present any) (any, error) {
		present.(map[string]any)["list"].([]any)[0] = 5
		return nil, &coffer.Error{Name: "format"}
	}, coffer.SetOptions{})
}

func (c call) increment() (last any, err error) {
	for count := 0; count < c.number(3); count++ {
		last, err = c.settings.Update(c.text(1), c.text(2), func(present any) (any, error) {
			number, _ := present.(int64)
			return number + 1, nil
		}, coffer.SetOptions{})
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}

func (c call) transaction() (any, error) {
	var checks []coffer.Item
	if key, ok := c.words[2].(string); ok {
		checks = []coffer.Item{{Collection: c.text(1), Key: key, Version: int64(c.number(3))}}
	}
	var changes []coffer.Change
	for _, each := range c.words[4:] {
		pair := each.([]any)
		var options coffer.SetOptions
		if len(pair) > 2 {
			options.Undeclared = pair[2].(map[string]any)["undeclared"].(bool)
		}
		changes = append(changes, coffer.Change{
			Collection: c.text(1), Key: pair[0].(string), Value: value(pair[1]), Unset: pair[1] == nil, Options: options,
		})
	}
	items, err := c.settings.Transaction(changes, checks...)
	versions := []int64{}
	for _, item := range items {
		versions = append(versions, item.Version)
	}
	return versions, err
}

// check sets a value if that in memory is the present one.
func (c call) check() (any, error) {
	change := coffer.Change{Collection: c.text(1), Key: c.text(2), Value: value(c.words[3])}
	_, err := c.settings.Transaction([]coffer.Change{change}, c.settings.Item(c.text(1), c.text(2)))
	return nil, err
}

// types sets values of types that only Go has, and returns what is wrong with those that are read.
func (c call) types() (any, error) {
	now := time.Now().Round(time.Microsecond)
	if _, err := c.settings.Set(c.text(1), "now", now, coffer.SetOptions{}); err != nil {
		return nil, err
	}
	if date, err := coffer.Get[time.Time](c.settings, c.text(1), "now"); err != nil || !date.Equal(now) {
		return fmt.Sprintf("%v was %v: %v", date, now, err), nil
	}
	_, err := c.settings.Set(c.text(1), "url", (*url.URL)(nil), coffer.SetOptions{})
	if !errors.Is(err, coffer.ErrWrongType) {
		return fmt.Sprintf("a URL that is nil: %v", err), nil
	}
	for number, isExact := range map[int64]bool{1 << 60: true, 1<<53 + 1: false, math.MaxInt64: false, math.MinInt64: true} {
		if _, err := c.settings.Set(c.text(1), "number", number, coffer.SetOptions{}); err != nil {
			return nil, err
		}
		if float, err := coffer.Get[float64](c.settings, c.text(1), "number"); (err == nil) != isExact {
			return fmt.Sprintf("%d is %v: %v", number, float, err), nil
		}
	}
	return nil, nil
}

func versionOf(item coffer.Item, err error) (any, error) { return item.Version, err }

func (c call) do() (any, error) {
	s := c.settings
	switch c.text(0) {
	case "get":
		return s.Item(c.text(1), c.text(2)).Value()
	case "default":
		return coffer.GetOr(s, c.text(1), c.text(2), c.text(3))
	case "number":
		return coffer.Get[int](s, c.text(1), c.text(2))
	case "item":
		item := s.Item(c.text(1), c.text(2))
		return []any{item.Version, item.Origin}, nil
	case "items", "values":
		keys, values := []string{}, map[string]any{}
		items, err := s.Items(c.text(1))
		for _, item := range items {
			keys = append(keys, item.Key)
			values[item.Key], _ = item.Value()
		}
		if c.text(0) == "items" {
			return keys, err
		}
		return values, err
	case "size":
		text, err := coffer.Get[string](s, c.text(1), c.text(2))
		return len([]rune(text)), err
	case "large":
		return versionOf(s.Set(c.text(1), c.text(2), strings.Repeat("é", c.number(3)/2), coffer.SetOptions{}))
	case "set":
		var options coffer.SetOptions
		if len(c.words) > 4 {
			version := int64(c.words[4].(map[string]any)["if_version"].(float64))
			options.IfVersion = &version
		}
		return versionOf(s.Set(c.text(1), c.text(2), value(c.words[3]), options))
	case "set-secret":
		return versionOf(s.Set(c.text(1), c.text(2), coffer.NewSecret(c.text(3)), coffer.SetOptions{}))
	case "secret":
		secret, err := s.Secret(c.text(1), c.text(2))
		return secret.Text(), err
	case "shown":
		secret, err := s.Secret(c.text(1), c.text(2))
		return fmt.Sprintf("%v %+v %#v %s", s.Item(c.text(1), c.text(2)), secret, secret, secret), err
	case "unset":
		return versionOf(s.Unset(c.text(1), c.text(2), nil))
	case "copy":
		value, err := s.Item(c.text(1), c.text(2)).Value()
		if err != nil {
			return nil, err
		}
		return versionOf(s.Set(c.text(1), c.text(3), value, coffer.SetOptions{}))
	case "lengthen":
		return c.lengthen()
	case "spoil":
		return c.spoil()
	case "increment":
		return c.increment()
	case "write":
		return c.write()
	case "transaction":
		return c.transaction()
	case "check":
		return c.check()
	case "types":
		return c.types()
	case "wait":
		return c.wait()
	case "describe":
		answer, err := s.Request("describe", map[string]any{"collection": c.text(1), "key": c.text(2)})
		if err != nil {
			return nil, err
		}
		var described struct {
			Type string `json:"type"`
		}
		err = json.Unmarshal(answer, &described)
		return described.Type, err
	case "observe":
		_, err := s.OnChange(c.text(1), c.text(2), note)
		return true, err
	case "seen":
		lock.Lock()
		defer lock.Unlock()
		return append([]any{}, seen...), nil
	case "problem":
		var problem *coffer.Error
		if errors.As(s.Problem(), &problem) {
			return problem.Name, nil
		}
		return nil, nil
	case "close":
		s.Close()
		return nil, nil
	}
	panic(c.text(0))
}

func show(answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func main() {
	options := coffer.Options{Reveal: os.Getenv("COFFER_REVEAL") != ""}
	if text := os.Getenv("COFFER_PATIENCE"); text != "" {
		options.Patience, _ = time.ParseDuration(text + "s")
	}
	settings, err := coffer.Open(options, os.Args[1:]...)
	if err != nil {
		panic(err)
	}
	show("ready")
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		next := call{settings: settings}
		if err := json.Unmarshal(line, &next.words); err != nil {
			panic(err)
		}
		ok, err := next.do()
		var failed *coffer.Error
		if errors.As(err, &failed) {
			show(map[string]any{"error": failed.Name, "code": failed.Code, "message": failed.Message})
		} else if err != nil {
			panic(err)
		} else {
			show(map[string]any{"ok": ok})
		}
	}
}
