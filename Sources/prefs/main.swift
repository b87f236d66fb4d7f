import PrefsCommands

PrefsTool.main()
