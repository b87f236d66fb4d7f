import CSQLite
import CofferStorage
import Foundation

/// A file used through the recorder.
final class RecordedFile {
  let real: RealFile
  let path: String
  let recorder: RecordingVFS
  /// The first region of the wal-index.
  private(set) var index: UnsafeMutableRawPointer?
  private var indexByteCount = 0
  /// Whether the next sync makes the system's VFS also sync the folder, as for a log that it has created.
  private var syncsFolder: Bool

  init(real: RealFile, path: String, isNewLog: Bool, recorder: RecordingVFS) {
    self.real = real
    self.path = path
    syncsFolder = isNewLog
    self.recorder = recorder
  }

  private var below: sqlite3_io_methods { real.methods }

  private func failure(_ kind: RecordingVFS.Call.Kind) -> Int32? {
    recorder.failure(of: RecordingVFS.Call(kind: kind, path: path))
  }

  // MARK: Bytes

  private func read(_ buffer: UnsafeMutableRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
    let call = RecordingVFS.Call(kind: .read, path: path, offset: offset, byteCount: count)
    switch recorder.fault(of: call) {
    case nil: return real.read(buffer, count, at: offset)
    case .half:
      let code = real.read(buffer, count / 2, at: offset)
      // "If xRead() returns SQLITE_IOERR_SHORT_READ it must also fill in the unread portions of the buffer with zeros":
      // https://www.sqlite.org/c3ref/io_methods.html
      memset(buffer + count / 2, 0, count - count / 2)
      return code == SQLITE_OK ? COFFER_IOERR_SHORT_READ : code
    case let fault?: return RecordingVFS.code(of: fault, .read)
    }
  }

  private func write(_ buffer: UnsafeRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
    let call = RecordingVFS.Call(kind: .write, path: path, offset: offset, byteCount: count)
    let fault = recorder.fault(of: call)
    var written = count
    if let fault {
      guard case .half = fault else { return RecordingVFS.code(of: fault, .write) }
      written = count / 2
    }
    recorder.record(.write(path: path, offset: offset, bytes: Data(bytes: buffer, count: written)))
    let code = real.write(buffer, written, at: offset)
    return fault.map { RecordingVFS.code(of: $0, .write) } ?? code
  }

  private func truncate(_ size: Int64) -> Int32 {
    if let code = failure(.truncate) { return code }
    recorder.record(.truncate(path: path, size: size))
    return below.xTruncate(real.file, size)
  }

  private func sync(_ flags: Int32) -> Int32 {
    if let code = failure(.sync) {
      recorder.record(.failedSync(path: path))
      return code
    }
    let code = below.xSync(real.file, flags)
    recorder.record(code == SQLITE_OK ? .sync(path: path) : .failedSync(path: path))
    if code == SQLITE_OK, syncsFolder {
      syncsFolder = false
      recorder.record(.syncFolder(path: URL(fileURLWithPath: path).deletingLastPathComponent().path))
    }
    return code
  }

  // MARK: Shared memory

  private func mapIndex(
    _ region: Int32, _ count: Int32, _ extend: Int32, _ result: UnsafeMutableRawPointer
  ) -> Int32 {
    if let code = failure(.mapIndex) {
      result.storeBytes(of: nil, as: UnsafeMutableRawPointer?.self)
      return code
    }
    let code = below.xShmMap(
      real.file, region, count, extend, result.assumingMemoryBound(to: UnsafeMutableRawPointer?.self))
    if region == 0, code == SQLITE_OK {
      index = result.load(as: UnsafeMutableRawPointer?.self)
      indexByteCount = Int(count)
    }
    return code
  }

  private func lockIndex(_ first: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    if flags & SQLITE_SHM_UNLOCK != 0 {
      if flags & SQLITE_SHM_EXCLUSIVE != 0 { recordIndex() }
    } else if let code = failure(.lockIndex) {
      return code
    }
    let code = below.xShmLock(real.file, first, count, flags)
    if code == SQLITE_OK { recorder.noteIndexAccess(.lock(first: Int(first), flags: flags), index) }
    return code
  }

  private func barrier() {
    recorder.noteIndexAccess(.barrier, index)
    below.xShmBarrier(real.file)
  }

  private func recordIndex() {
    guard let index else { return }
    recorder.record(.sharedMemory(path: path + "-shm", bytes: Data(bytes: index, count: indexByteCount)))
  }

  // MARK: Methods

  private static func of(_ file: UnsafeMutablePointer<sqlite3_file>?) -> RecordedFile {
    OpenFile.state(file!).takeUnretainedValue()
  }

  /// Written once, before any file is opened, and only read afterwards.
  nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: sqlite3_io_methods())
    methods.pointee.iVersion = 2
    methods.pointee.xClose = { file in
      let state: Unmanaged<RecordedFile> = OpenFile.state(file!)
      let code = state.takeUnretainedValue().real.close()
      state.release()
      return code
    }
    methods.pointee.xRead = { file, buffer, count, offset in of(file).read(buffer!, Int(count), offset) }
    methods.pointee.xWrite = { file, buffer, count, offset in of(file).write(buffer!, Int(count), offset) }
    methods.pointee.xTruncate = { file, size in of(file).truncate(size) }
    methods.pointee.xSync = { file, flags in of(file).sync(flags) }
    methods.pointee.xFileSize = { file, result in
      of(file).failure(.size) ?? of(file).below.xFileSize(of(file).real.file, result)
    }
    methods.pointee.xLock = { file, level in of(file).failure(.lock) ?? of(file).below.xLock(of(file).real.file, level)
    }
    methods.pointee.xUnlock = { file, level in of(file).below.xUnlock(of(file).real.file, level) }
    methods.pointee.xCheckReservedLock = { file, result in
      of(file).below.xCheckReservedLock(of(file).real.file, result)
    }
    methods.pointee.xFileControl = { file, operation, argument in
      of(file).below.xFileControl(of(file).real.file, operation, argument)
    }
    methods.pointee.xSectorSize = { file in of(file).below.xSectorSize(of(file).real.file) }
    methods.pointee.xDeviceCharacteristics = { file in of(file).below.xDeviceCharacteristics(of(file).real.file) }
    methods.pointee.xShmMap = { file, region, count, extend, result in of(file).mapIndex(region, count, extend, result!)
    }
    methods.pointee.xShmLock = { file, first, count, flags in of(file).lockIndex(first, count, flags) }
    methods.pointee.xShmBarrier = { file in of(file).barrier() }
    methods.pointee.xShmUnmap = { file, delete in
      let recorded = of(file)
      recorded.recordIndex()
      recorded.index = nil
      return recorded.below.xShmUnmap(recorded.real.file, delete)
    }
    return UnsafePointer(methods)
  }()
}
