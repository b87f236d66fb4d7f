import PrefsFormats

FormatsTool.main()
