#if canImport(SwiftUI)
  import Observation
  import SwiftUI
  import Synchronization

  extension Preference: DynamicProperty {
    /// Called by SwiftUI before it draws the view: from the first time on, changes draw it anew.
    public nonisolated func update() {
      redraws.follow { values }
    }

    /// The setting as controls take it.
    ///
    /// ```swift
    /// Picker("Theme", selection: $theme.binding) { … }
    /// ```
    public var binding: Binding<Object> {
      Binding {
        wrappedValue
      } set: {
        wrappedValue = $0
      }
    }
  }

  /// Draws a view anew when a setting changes that it has read.
  final class Redraws: Observable, Sendable {
    private let registrar = ObservationRegistrar()
    private let following = Mutex<Task<Void, Never>?>(nil)

    deinit {
      following.withLock { $0?.cancel() }
    }

    /// Stands for the value to SwiftUI, which knows only what was read and what changed.
    private var value: Void { () }

    func recordAccess() {
      registrar.access(self, keyPath: \.value)
    }

    private func recordChange() {
      registrar.withMutation(of: self, keyPath: \.value) {}
    }

    func follow<Object>(_ values: () -> Preferences.Values<Object>) {
      following.withLock { task in
        guard task == nil else { return }
        let values = values()
        task = Task { [weak self] in
          var isFirst = true
          for await _ in values {
            // The present value is on its way to the screen already.
            if !isFirst { await MainActor.run { [weak self] in self?.recordChange() } }
            isFirst = false
          }
        }
      }
    }
  }
#endif
