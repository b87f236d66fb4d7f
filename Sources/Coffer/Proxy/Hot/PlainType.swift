/// The types whose values need no encoding, and which are set and read most: `Int`, `Bool`, `Double` and `String`.
///
/// A program's compiler knows the type where it reads or sets a setting. Inlined there, one of the ways below is left, and
/// nothing generic.
@usableFromInline
enum PlainType {
  /// Takes the way that is for `Object`.
  @inlinable
  @inline(__always)
  static func match<Object, Result>(
    _ type: Object.Type, int: @autoclosure () throws -> Result, bool: @autoclosure () throws -> Result,
    double: @autoclosure () throws -> Result, string: @autoclosure () throws -> Result,
    otherwise: @autoclosure () throws -> Result
  ) rethrows -> Result {
    if Object.self == Int.self { return try int() }
    if Object.self == Bool.self { return try bool() }
    if Object.self == Double.self { return try double() }
    if Object.self == String.self { return try string() }
    return try otherwise()
  }

  /// Takes the way that is for `Object`; each gives what `Result` is where `Object` is its type.
  @inlinable
  @inline(__always)
  static func value<Object, Result, ForInt, ForBool, ForDouble, ForString>(
    of type: Object.Type, int: @autoclosure () throws -> ForInt, bool: @autoclosure () throws -> ForBool,
    double: @autoclosure () throws -> ForDouble, string: @autoclosure () throws -> ForString,
    otherwise: @autoclosure () throws -> Result
  ) rethrows -> Result {
    try match(
      type, int: same(try int()), bool: same(try bool()), double: same(try double()), string: same(try string()),
      otherwise: try otherwise())
  }

  /// A value as one of `Target`, which is its type, though generic code does not say so.
  @inlinable
  @inline(__always)
  static func same<Source, Target>(_ value: Source, as type: Target.Type = Target.self) -> Target {
    assert(Source.self == Target.self)
    return unsafeBitCast(value, to: type)
  }
}
