import PrefsPage

PageTool.main()
