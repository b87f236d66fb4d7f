// Package coffer reads settings of a Coffer store from memory, follows them as they change, and sets them with every check of `prefs`.
//
// It speaks with a child, `prefs serve`; Documentation/Serve.md of Coffer has the protocol.
package coffer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"sort"
	"sync"
	"time"
	"unicode/utf8"
)

// Options say which store and key `prefs serve` opens; what is empty is as for every command. With Reveal, secrets are in memory like other
// values. A request waits for Patience, 30 s, before it is ErrUnavailable.
type Options struct {
	Store, KeyFile, App, Program string
	Arguments                    []string
	Reveal                       bool
	Patience                     time.Duration
}

// SetOptions are those of `prefs set`. IfVersion is a pointer because 0 means that there must be none.
type SetOptions struct {
	Type       string `json:"type,omitempty"`
	IfVersion  *int64 `json:"ifVersion,omitempty"`
	ExpiresIn  string `json:"expiresIn,omitempty"`
	ExpiresAt  string `json:"expiresAt,omitempty"`
	Due        string `json:"due,omitempty"`
	Undeclared bool   `json:"undeclared,omitempty"`
}

// Change is one of a transaction: a value to set, or, with Unset, to remove.
type Change struct {
	Collection, Key string
	Value           any
	Unset           bool
	Options         SetOptions
}

const firstDelay = 50 * time.Millisecond

type place struct{ collection, key string }

type observer struct {
	place
	call func(Item)
}

// Settings are collections of a store, as they are now.
//
// A child, `prefs serve`, runs until Close. While it is away, for whatever reason, values stay as they were, Problem says why, and it is
// started again.
type Settings struct {
	program   string
	arguments []string
	wanted    map[string]any
	patience  time.Duration

	lock      sync.RWMutex
	items     map[place]Item
	observers map[*observer]bool
	changed   map[place]bool
	problem   error
	child     *child
	current   chan struct{} // closed while the child's values are there
	wake      chan struct{}
	store     string // the ID of the present one

	watch         int // This and what follows is of the goroutine that follows.
	started       bool
	delay         time.Duration
	closing, over chan struct{}
	close         sync.Once
}

// Open starts the child, and reads the collections.
func Open(options Options, collections ...string) (*Settings, error) {
	arguments := append([]string{"serve"}, options.Arguments...)
	for _, option := range [][2]string{{"--store", options.Store}, {"--key-file", options.KeyFile}, {"--app", options.App}} {
		if option[1] != "" {
			arguments = append(arguments, option[0], option[1])
		}
	}
	if len(collections) == 0 {
		collections = []string{options.App} // The default one.
	}
	if options.Program == "" {
		options.Program = "prefs"
	}
	if options.Patience == 0 {
		options.Patience = 30 * time.Second
	}
	s := &Settings{
		program: options.Program, arguments: arguments, patience: options.Patience,
		wanted: map[string]any{"collections": collections, "reveal": options.Reveal},
		items:  map[place]Item{}, observers: map[*observer]bool{}, changed: map[place]bool{},
		delay: firstDelay, current: make(chan struct{}), wake: make(chan struct{}, 1),
		closing: make(chan struct{}), over: make(chan struct{}),
	}
	go s.follow()
	go s.observe()
	if _, err := s.connected(); err != nil {
		if problem := s.Problem(); problem != nil {
			err = problem
		}
		s.Close()
		return nil, err
	}
	return s, nil
}

// Problem says why values may be old; nil while the child runs and can read the store. That it was stopped is noticed by the next request.
func (s *Settings) Problem() error {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.problem
}

// Get returns the value, else its declared default; ErrWrongType if it is not of this type. An int does for an integer, and a float64 where it is exact.
func Get[T any](s *Settings, collection, key string) (T, error) {
	var typed T
	value, err := s.Item(collection, key).Value()
	if err != nil {
		return typed, err
	}
	if typed, ok := value.(T); ok {
		return typed, nil
	}
	if number, ok := value.(int64); ok {
		switch target := any(&typed).(type) {
		case *int:
			*target = int(number)
			return typed, nil
		case *float64:
			*target = float64(number)
			if *target < 1<<63 && int64(*target) == number {
				return typed, nil
			}
		}
	}
	return typed, failure(ErrWrongType, "%s/%s has a value of type %T, and %T was asked for.", collection, key, value, typed)
}

// GetOr is Get with another value where there is none.
func GetOr[T any](s *Settings, collection, key string, other T) (T, error) {
	value, err := Get[T](s, collection, key)
	if errors.Is(err, ErrNotFound) {
		return other, nil
	}
	return value, err
}

// Item returns the setting with its version and origin. Its Value is the error "usage" if its collection was not named at the opening.
func (s *Settings) Item(collection, key string) Item {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.item(place{collection, key})
}

// item is Item; the lock is held.
func (s *Settings) item(place place) Item {
	if item, ok := s.items[place]; ok {
		return item
	}
	return Item{Collection: place.collection, Key: place.key, store: s.store, err: s.followed(place.collection)}
}

func (s *Settings) followed(collection string) error {
	for _, each := range s.wanted["collections"].([]string) {
		if each == collection {
			return nil
		}
	}
	message := fmt.Sprintf("These settings do not follow the collection %q: name it when they are opened.", collection)
	return &Error{Name: "usage", Code: 2, Message: message}
}

// Items returns all that are set or have a default, by key, as of one moment.
func (s *Settings) Items(collection string) ([]Item, error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	var items []Item
	for _, item := range s.items {
		if item.Collection == collection && item.IsSet() {
			items = append(items, item)
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].Key < items[j].Key })
	return items, s.followed(collection)
}

// Secret asks for a secret now, and does not keep it.
func (s *Settings) Secret(collection, key string) (Secret, error) {
	item, err := request[Item](s, "get", map[string]any{"collection": collection, "key": key, "reveal": true})
	if err != nil {
		return Secret{}, err
	}
	value, err := item.Value()
	if err != nil {
		return Secret{}, err
	}
	if secret, ok := value.(Secret); ok {
		return secret, nil
	}
	return Secret{}, failure(ErrWrongType, "%s/%s is no secret.", collection, key)
}

// OnChange calls observer, in a goroutine for all of them, with the newest item after changes of a key, or of any for "". It returns what ends it,
// and an error "usage", as Items does, if the collection was not named at the opening.
func (s *Settings) OnChange(collection, key string, call func(Item)) (end func(), err error) {
	entry := &observer{place{collection, key}, call}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.observers[entry] = true
	return func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		delete(s.observers, entry)
	}, s.followed(collection)
}

// Set sets a value with all checks of `prefs set`. Afterwards it is on the disk, and Get has it.
func (s *Settings) Set(collection, key string, value any, options SetOptions) (Item, error) {
	members, err := Change{Collection: collection, Key: key, Value: value, Options: options}.members()
	if err != nil {
		return Item{}, err
	}
	return s.change("set", members)
}

// Unset removes a value; a version other than nil is the one that it must have.
func (s *Settings) Unset(collection, key string, ifVersion *int64) (Item, error) {
	members := map[string]any{"collection": collection, "key": key}
	if ifVersion != nil {
		members["ifVersion"] = *ifVersion
	}
	return s.change("unset", members)
}

// change returns the item of the answer, in the store that was there before: if another one takes its place, a check must fail.
func (s *Settings) change(do string, members map[string]any) (Item, error) {
	store := s.present()
	item, err := request[Item](s, do, members)
	item.store = store
	return item, err
}

// present is the ID of the present store.
func (s *Settings) present() string {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.store
}

// Update sets what change makes of the present value, or of nil, and returns it; again if another program was faster.
func (s *Settings) Update(collection, key string, compute func(any) (any, error), options SetOptions) (any, error) {
	item := s.Item(collection, key)
	for attempt := 0; attempt < 1000; attempt++ {
		value, err := item.Value()
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if value, err = compute(copied(value)); err != nil { // It may change a map in place, and fail.
			return nil, err
		}
		options.IfVersion = &item.Version
		members, err := Change{Collection: collection, Key: key, Value: value, Options: options}.members()
		if err != nil {
			return nil, err
		}
		members["reveal"] = s.wanted["reveal"]
		answer, err := request[struct {
			Conflict *Item
			Store    string
		}](s, "update", item.expect(members))
		if err != nil {
			return nil, err
		}
		if answer.Conflict == nil {
			return value, nil
		}
		item = *answer.Conflict
		item.store = answer.Store
		time.Sleep(time.Duration(rand.Int63n(int64(attempt%20+1) * int64(time.Millisecond))))
	}
	return nil, failure(ErrConflict, "Other programs changed %s/%s each time; nothing was changed.", collection, key)
}

// Transaction makes changes together, or not at all; ErrConflict if one of the checked items has another version by then, or is of another store.
func (s *Settings) Transaction(changes []Change, checks ...Item) ([]Item, error) {
	checked, changed := []any{}, []any{}
	for _, item := range checks {
		if item.err != nil {
			return nil, item.err
		}
		checked = append(checked, item.expect(map[string]any{"collection": item.Collection, "key": item.Key, "version": item.Version}))
	}
	for _, each := range changes {
		if each.Unset {
			changed = append(changed, map[string]any{"unset": map[string]any{"collection": each.Collection, "key": each.Key}})
			continue
		}
		members, err := each.members()
		if err != nil {
			return nil, err
		}
		changed = append(changed, map[string]any{"set": members})
	}
	store := s.present()
	answer, err := request[struct{ Items []Item }](s, "transaction", map[string]any{"changes": changed, "checks": checked})
	for index := range answer.Items {
		answer.Items[index].store = store
	}
	return answer.Items, err
}

func (c Change) members() (map[string]any, error) {
	value, err := encode(c.Value)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(c.Collection + c.Key) {
		return nil, failure(ErrInvalidValue, "A name that is not UTF-8 cannot be stored.")
	}
	members := map[string]any{}
	text, err := json.Marshal(c.Options)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	members["collection"], members["key"], members["value"] = c.Collection, c.Key, value
	return members, err
}
