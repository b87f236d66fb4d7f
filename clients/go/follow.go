package coffer

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// follow starts one child after another.
func (s *Settings) follow() {
	defer close(s.over)
	for {
		err := s.serve()
		s.lock.Lock()
		s.problem = asError(err)
		select {
		case <-s.current:
			s.current = make(chan struct{})
		default:
		}
		child := s.child
		s.child = nil
		s.lock.Unlock()
		if child != nil {
			child.end()
		}
		if !s.started {
			return
		}
		select {
		case <-s.closing:
			return
		case <-time.After(s.delay):
		}
		if s.delay *= 2; s.delay > 5*time.Second {
			s.delay = 5 * time.Second
		}
	}
}

func (s *Settings) serve() error {
	arguments := s.arguments
	if s.started { // In the place of a store that is away, another one would be empty.
		arguments = append(append([]string{}, arguments...), "--must-exist")
	}
	child, err := start(s.program, arguments, s.patience)
	if err != nil {
		return err
	}
	s.lock.Lock()
	s.child = child
	s.lock.Unlock()
	select {
	case <-s.closing:
		return failure(ErrUnavailable, "The settings are closed.")
	default:
	}
	if err := child.readHello(); err != nil {
		return err
	}
	members := map[string]any{"values": true}
	for name, value := range s.wanted {
		members[name] = value
	}
	s.lock.Lock()
	s.store, s.position, s.watch, s.away, s.asking = child.hello.Store, "", 0, false, false
	s.forgetHistory()
	s.lock.Unlock()
	var failed error
	check := func(answer line) {
		if answer.Error != nil {
			failed = answer.Error
			_ = child.command.Process.Kill()
		}
	}
	note := func(answer line) {
		if check(answer); failed == nil {
			var watch struct{ Watch int }
			failed = json.Unmarshal(answer.OK, &watch)
			s.watch = watch.Watch
		}
	}
	if err := child.send("watch", members, note); err != nil {
		return err
	}
	s.ask = func(needed, history int) {
		fill := func(answer line) {
			if check(answer); failed == nil {
				if failed = s.fill(needed, history, answer); failed != nil {
					_ = child.command.Process.Kill()
				}
			}
		}
		_ = child.send("snapshot", s.wanted, fill) // The next child is asked as well.
	}
	s.lock.Lock()
	s.need()
	s.lock.Unlock()
	err = child.follow(s.notice)
	if failed != nil {
		return failed
	}
	return err
}

// forgetHistory is for another store, or a state that was put back; the lock is held.
func (s *Settings) forgetHistory() {
	s.later = nil
	s.history++
}

// need asks for a snapshot, or for another one once that comes which was asked for; the lock is held.
func (s *Settings) need() {
	s.needed++
	if !s.asking {
		s.asking = true
		go s.ask(s.needed, s.history) // Not here: the child may wait for this goroutine to read before it reads itself.
	}
}

type snapshot struct {
	Position, Store string
	Items           []Item
}

func (s *Settings) fill(needed, history int, answer line) error {
	var taken snapshot
	if err := json.Unmarshal(answer.OK, &taken); err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if history == s.history { // Else it may be of the former store, or of a state that was put back.
		s.take(needed, taken)
	}
	if s.asking = needed < s.needed; s.asking {
		go s.ask(s.needed, s.history)
	} else {
		s.later = nil
	}
	return nil
}

func (s *Settings) take(needed int, taken snapshot) {
	if taken.Store != "" {
		s.store = taken.Store
	}
	former := s.items
	s.items, s.position, s.filled, s.delay = map[place]Item{}, taken.Position, needed, firstDelay
	for _, item := range taken.Items {
		s.keep(item)
	}
	for _, notice := range s.later {
		if commit(notice.Position) > commit(s.position) { // Else the snapshot has it.
			s.apply(notice)
		}
	}
	if !s.away {
		s.problem = nil
	}
	var changed []place
	for place, item := range s.items {
		was, ok := former[place]
		if was.store = item.store; !ok || !reflect.DeepEqual(was, item) {
			changed = append(changed, place)
		}
	}
	for place := range former {
		if _, ok := s.items[place]; !ok {
			changed = append(changed, place)
		}
	}
	if s.started {
		s.report(changed)
	}
	s.started = true
	select {
	case <-s.current:
	default:
		close(s.current)
	}
	close(s.stepped)
	s.stepped = make(chan struct{})
}

// apply takes the changes of a notice, and returns where they are.
func (s *Settings) apply(notice line) []place {
	var changed []place
	for _, change := range notice.Changes {
		changed = append(changed, place{change.Item.Collection, change.Item.Key})
		s.keep(change.Item)
	}
	s.position = notice.Position
	return changed
}

func (s *Settings) keep(item Item) {
	item.store = s.store
	if place := (place{item.Collection, item.Key}); item.isKept() {
		s.items[place] = item
	} else {
		delete(s.items, place)
	}
}

func (s *Settings) notice(notice line) {
	s.lock.Lock()
	defer s.lock.Unlock()
	isLater := notice.Position == "" || commit(notice.Position) >= commit(s.position)
	switch {
	case *notice.Watch != s.watch: // Of one that the program has asked for.
	case notice.Unavailable != nil:
		s.problem, s.away = notice.Unavailable, true
	case notice.Changes == nil:
		s.away = s.away && !notice.Available
		if notice.Replaced != "" || !isLater {
			s.forgetHistory()
		}
		if notice.Replaced != "" {
			s.store = notice.Replaced
		}
		if notice.Position != "" {
			s.position = notice.Position
		}
		s.need()
	case isLater: // Else the snapshot has it, and what came after it.
		if s.asking {
			s.later = append(s.later, notice)
		}
		s.report(s.apply(notice))
	}
}

// report has observers called; the lock is held.
func (s *Settings) report(changed []place) {
	for _, next := range changed {
		s.changed[next] = true
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Settings) observe() {
	for isOver := false; !isOver; {
		select {
		case <-s.over:
			isOver = true
		case <-s.wake:
		}
		s.lock.Lock()
		changed := s.changed
		s.changed = map[place]bool{}
		var calls []func()
		for next := range changed {
			item := s.item(next)
			for entry := range s.observers {
				if entry.collection == next.collection && (entry.key == "" || entry.key == next.key) {
					call := entry.call
					calls = append(calls, func() { call(item) })
				}
			}
		}
		s.lock.Unlock()
		for _, call := range calls {
			call()
		}
	}
}

// commit is the number of a position's commit.
func commit(position string) int {
	text, _, _ := strings.Cut(position, "-")
	number, _ := strconv.Atoi(text)
	return number
}
